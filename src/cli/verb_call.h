// SPDX-License-Identifier: Apache-2.0
//
// `coffer call TOOL`: a declared tool, through the whole ladder, without a daemon.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int CallVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
