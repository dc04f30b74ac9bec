// SPDX-License-Identifier: Apache-2.0
//
// `coffer sessions`: who works where, and an end to it.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int SessionsVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
