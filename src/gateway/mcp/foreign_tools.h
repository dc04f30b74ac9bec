// SPDX-License-Identifier: Apache-2.0
//
// The tools of another MCP server: what it says of them is hostile text, and becomes tools that climb the ladder.
//
// A tool keeps its schema, because its arguments must fit it, and loses everything that could
// loosen: its effect is irreversible whatever its annotations say, and its words are shown as the
// server's own. A tool whose schema we cannot enforce exactly, or whose names hide something, is
// left out, with the reason.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "policy/tool.h"

namespace coffer::gateway {

struct ForeignTool {
  std::string name;                   // as its server calls it
  std::string definition;             // all that the server said of it, as JSON with sorted keys
  std::shared_ptr<const Json> shown;  // as agents see it
  std::shared_ptr<const policy::Tool> tool;      // under the name that agents use: "PREFIX-name"
  std::shared_ptr<const policy::Schema> output;  // null: none that we can check
};

struct ForeignTools {
  std::map<std::string, ForeignTool> tools;  // by the name that agents use
  std::vector<std::string> left_out;         // sentences
};

inline constexpr size_t kMostForeignTools = 256;

// `list` is the list of tools as the server gave it. `server` is a manifest that says what its
// boundary is; its name is the prefix.
ForeignTools ReadForeignTools(const Json& list, const policy::Manifest& server);

// What clients call it. Names may have capitals and underscores elsewhere; here two names that
// differ only in them are one.
std::string ForeignName(const std::string& prefix, std::string_view name);
// A name as MCP has them.
bool IsForeignName(std::string_view name);

// What a definition is compared by: the JSON of `value`, with sorted keys.
std::string SortedJson(const Json& value);

}  // namespace coffer::gateway
