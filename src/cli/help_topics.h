// SPDX-License-Identifier: Apache-2.0
//
// The pages of `coffer help TOPIC` that are not about a verb: `manifest` and `config`. They are inside the program, so
// that help never points at a file that is not installed.
#pragma once

#include <string_view>
#include <vector>

namespace coffer::cli {

// "" if there is no such page.
std::string_view FindHelpTopic(std::string_view name);
std::vector<std::string_view> HelpTopicNames();

}  // namespace coffer::cli
