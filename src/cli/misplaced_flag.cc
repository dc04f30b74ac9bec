// SPDX-License-Identifier: Apache-2.0
#include "cli/misplaced_flag.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/run_flags.h"

namespace coffer::cli {

std::string MisplacedFlagNote(const call::RunRequest& request) {
  if (!request.script) {
    return {};
  }
  const std::vector<std::string_view>& flags = RunFlagNames();
  for (size_t i = 1; i < request.command.size(); ++i) {
    const std::string_view word = request.command[i];
    const std::string_view name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::find(flags.begin(), flags.end(), name) != flags.end()) {
      return fmt::format(
          "{0} went to the script, as an argument; coffer's own {0} stands before the file", name);
    }
  }
  return {};
}

}  // namespace coffer::cli
