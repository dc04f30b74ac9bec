// SPDX-License-Identifier: Apache-2.0
//
// [calls]: the declared tools that the program of a tool may call from inside its boundary, and how often.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "policy/manifest/sections.h"

namespace coffer::policy {

void ReadCalls(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "calls", mistakes);
  CallsSpec& calls = manifest.calls;
  if (reader.Find("tools") == nullptr) {
    reader.Add("tools", "is missing", "write tools = [\"read-file\"], or leave out [calls]");
  }
  calls.tools = reader.Strings("tools").value_or(std::vector<std::string>());
  calls.most = reader.Count("most", 1, kMostCalls).value_or(calls.most);
  if (calls.tools.size() > kMostCalledTools) {
    reader.Add("tools", fmt::format("more than {} tools", kMostCalledTools), "name fewer");
  }
  for (const std::string& name : calls.tools) {
    if (!IsToolName(name)) {
      reader.Add("tools", fmt::format("\"{}\" is not a tool's name", Printable(name)),
                 "`coffer tools list` names them");
    } else if (name == manifest.tool.name) {
      reader.Add("tools", "a tool does not call itself", "leave out its own name");
    }
  }
  std::sort(calls.tools.begin(), calls.tools.end());
  if (manifest.isolation.level != Level::kContainer) {
    reader.Add("tools", "a process without a network of its own has no sockets",
               "write isolation.level = \"container\", or leave out [calls]");
  }
  if (manifest.isolation.syscalls == SyscallProfile::kStrict) {
    reader.Add("tools", "isolation.syscalls = \"strict\" refuses the socket that calls go through",
               "write isolation.syscalls = \"default\", or leave out [calls]");
  }
  if (manifest.background) {
    reader.Add("tools", "a process in the background calls no tools",
               "leave out [background] or [calls]");
  }
}

}  // namespace coffer::policy
