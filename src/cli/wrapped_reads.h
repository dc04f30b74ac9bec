// SPDX-License-Identifier: Apache-2.0
//
// What a client asks of a wrapped server beside tools: prompts/get, resources/list and
// resources/read. Each is a call of the ladder, and what the server answers is checked
// (gateway/mcp/foreign_offers.h).
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/json.h"
#include "call/tool_call.h"
#include "cli/wrapped_server.h"
#include "gateway/mcp/message.h"

namespace coffer::cli {

struct WrappedRead {
  std::string tool;  // for the ladder
  std::string args_json;
  std::string params_json;  // for the server
};

// Of a receipt: the server has no such resource.
inline constexpr const char* kNoResourceClass = "tool.resource";

bool IsWrappedRead(std::string_view method);
// An error is what the client did wrong.
std::variant<WrappedRead, gateway::McpError> MakeWrappedRead(const WrappedServer& server,
                                                             const std::string& method,
                                                             const Json& params);
// What of the answer goes to the client, at most `most` bytes.
Result<Json> CheckWrappedRead(const std::string& method, const Json& result,
                              const std::string& prefix, uint64_t most);
// What a client hears of a read that the ladder refused, or that failed.
gateway::McpError WrappedReadError(const call::ToolReply& reply);
// A method of which the server does not hear: it does not offer it, or no client may use it.
gateway::McpError NotPassedOn(const WrappedServer& server, const std::string& method);

}  // namespace coffer::cli
