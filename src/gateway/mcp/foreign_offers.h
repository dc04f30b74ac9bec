// SPDX-License-Identifier: Apache-2.0
//
// The prompts and resources of another MCP server: what it says of them, and what it answers when
// one is read, is hostile text.
//
// A prompt is "PREFIX-name", as a tool is. A URI has the prefix before its scheme,
// "PREFIX+file:///a": so a client never takes it for a file or a page that it could open itself.
// Only members that MCP knows are passed on, in the shapes that it knows; words that a person or a
// model reads have no characters that cannot be seen. The contents of a resource are data, and are
// not changed.
//
// Each read is a call of the ladder, so prompts and the two ways to read resources have tools,
// under names that no client calls.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "policy/tool.h"

namespace coffer::gateway {

struct ForeignPrompt {
  std::string name;                   // as its server calls it
  std::string definition;             // all that the server said of it, as JSON with sorted keys
  std::shared_ptr<const Json> shown;  // as clients see it
  std::shared_ptr<const policy::Tool> tool;  // "PREFIX-prompt-name": its arguments
};

struct ForeignTemplate {
  std::string definition;
  std::shared_ptr<const Json> shown;
};

inline constexpr size_t kMostForeignPrompts = 256;

// By the names that clients use. `server` and `left_out` are as in foreign_tools.h.
struct ForeignPrompts {
  std::map<std::string, ForeignPrompt> prompts;
  std::vector<std::string> left_out;
};
ForeignPrompts ReadForeignPrompts(const Json& list, const policy::Manifest& server);
struct ForeignTemplates {
  std::map<std::string, ForeignTemplate> templates;  // by the URI template that clients see
  std::vector<std::string> left_out;
};
ForeignTemplates ReadForeignTemplates(const Json& list, const policy::Manifest& server);

// "PREFIX-resources-list" and "PREFIX-resources-read".
std::vector<std::shared_ptr<const policy::Tool>> ForeignReadTools(const policy::Manifest& server);

// The URI that clients see for one of the server's, and back. Nothing: it is not a URI, or not of this server.
std::optional<std::string> ShowForeignUri(const std::string& prefix, std::string_view uri);
std::optional<std::string> FindForeignUri(const std::string& prefix, std::string_view shown);

// What of an answer goes to the client; refused (tool.result) if it has not the shape that MCP gives it.
Result<Json> CheckForeignPrompt(const Json& result, const std::string& prefix);
Result<Json> CheckForeignContents(const Json& result, const std::string& prefix);
// Resources that cannot be shown are left out.
Result<Json> CheckForeignPage(const Json& result, const std::string& prefix);
// A block of content in a result of a tool: links are those that clients see.
Result<Json> CheckForeignBlock(const Json& block, const std::string& prefix);

}  // namespace coffer::gateway
