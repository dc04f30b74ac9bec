// SPDX-License-Identifier: Apache-2.0
//
// One message of JSON-RPC 2.0 as MCP uses it: read from one text, written as one line of text.
//
// MCP is stricter than JSON-RPC: an id is a string or an integer and never null, and a message is an object.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/json.h"

namespace coffer::gateway {

// Of JSON-RPC, and of MCP from version 2026-07-28 on.
enum class McpErrorCode : int {
  kNotJson = -32700,
  kBadMessage = -32600,
  kNoMethod = -32601,
  kBadParams = -32602,
  kInternal = -32603,
  kNoResource = -32002,  // in the legacy era; the modern one says kBadParams
  kBadHeaders = -32020,  // HTTP fields that disagree with the message
  kBadVersion = -32022,
};

struct McpError {
  McpErrorCode code = McpErrorCode::kInternal;
  std::string message;
  std::string data_json;  // empty: none
};

// The JSON text of an id; empty: none.
using McpId = std::string;

struct McpMessage {
  McpId id;                            // none: a notification
  std::string method;                  // empty: an answer of the client
  std::shared_ptr<const Json> params;  // an object
};

// What cannot be answered to a request, because its id is not known, has none.
struct McpBadMessage {
  McpId id;
  McpError error;
};

inline constexpr size_t kMaxMcpLine = size_t{4} << 20;

using McpReading = std::variant<McpMessage, McpBadMessage>;
McpReading ReadMcpMessage(std::string_view line);

// Each is one line, with its end.
std::string McpResultLine(const McpId& id, const Json& result);
std::string McpErrorLine(const McpId& id, const McpError& error);
std::string McpNotificationLine(std::string_view method, const Json& params);

}  // namespace coffer::gateway
