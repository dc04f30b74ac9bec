// SPDX-License-Identifier: Apache-2.0
//
// Variables that Cofferdam sets for a command, where the caller has not.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace coffer::call {

// Unless the caller gave it another value with --env.
inline void SetVariable(std::string_view name, std::string_view value,
                        std::vector<std::string>& env) {
  const std::string start = std::string(name) + "=";
  const bool given = std::any_of(env.begin(), env.end(),
                                 [&](const std::string& one) { return one.starts_with(start); });
  if (!given) {
    env.push_back(start + std::string(value));
  }
}

}  // namespace coffer::call
