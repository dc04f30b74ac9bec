// SPDX-License-Identifier: Apache-2.0
//
// `coffer key`: API keys, made, listed and revoked by the owner of the state directory.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int KeyVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
