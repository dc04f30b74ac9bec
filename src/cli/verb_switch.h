// SPDX-License-Identifier: Apache-2.0
//
// `coffer switch`: stops agents, tools, sessions and tenants, and lets them go on.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int SwitchVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
