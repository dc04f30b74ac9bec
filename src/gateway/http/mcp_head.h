// SPDX-License-Identifier: Apache-2.0
//
// Which era of MCP a message over HTTP belongs to, and whether its header fields say the same as its body.
//
// In the modern era the method and the name of the tool stand in the head too, so that a proxy can
// route and police without reading bodies. A head and a body that disagree are refused: otherwise
// the proxy would judge one request and the server would run another. What is wrong here is
// answered with status 400.
#pragma once

#include <string>
#include <variant>

#include "gateway/http/message.h"
#include "gateway/mcp/message.h"

namespace coffer::gateway {

struct McpEra {
  bool modern = false;
  std::string legacy_version;  // of a legacy message
};

std::variant<McpEra, McpError> FindMcpEra(const Head& head, const McpMessage& message);

// Whether Accept lists the type, or everything, or is not there.
bool AcceptsType(const Head& head, std::string_view type);

}  // namespace coffer::gateway
