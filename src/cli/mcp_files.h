// SPDX-License-Identifier: Apache-2.0
//
// The files of the client's session as MCP resources: listed in pages, and read one at a time.
//
// A file is looked up below the session's directory and nowhere else: no "..", no link, no device.
// Its URI names the session, and one of another session is not there.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/json.h"
#include "cli/local_sessions.h"
#include "gateway/mcp/server.h"

namespace coffer::cli {

class McpFiles {
 public:
  // `session` is held, and outlives this.
  explicit McpFiles(const LocalSessions::Held& session) : session_(session) {}

  using Answer = std::variant<Json, JsonPieces, gateway::McpError>;
  // Nothing: the method is not about resources.
  std::optional<Answer> Handle(State& state, const gateway::McpRequest& request) const;

 private:
  Answer List(State& state, const Json& params) const;
  Answer Read(const Json& params) const;

  const LocalSessions::Held& session_;
};

}  // namespace coffer::cli
