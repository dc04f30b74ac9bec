// SPDX-License-Identifier: Apache-2.0
#include "cli/tool_flags.h"

#include <fmt/format.h>

#include <algorithm>

namespace coffer::cli {

Status CheckToolFlags(const std::vector<std::string_view>& given, call::RunRequest& request) {
  for (const char* const flag : {"--tools-dir", "--tool-calls"}) {
    if (request.tools.empty() && std::find(given.begin(), given.end(), flag) != given.end()) {
      return Refused("policy.usage", fmt::format("{} needs --tools", flag),
                     "name the tools too: --tools NAME,...");
    }
  }
  if (request.tools.size() > call::kMostTools || request.tool_calls > call::kMostToolCalls) {
    return Refused("policy.value", fmt::format("at most {} tools and {} calls of them",
                                               call::kMostTools, call::kMostToolCalls));
  }
  std::sort(request.tools.begin(), request.tools.end());
  request.tools.erase(std::unique(request.tools.begin(), request.tools.end()), request.tools.end());
  return {};
}

}  // namespace coffer::cli
