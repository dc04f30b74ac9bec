// SPDX-License-Identifier: Apache-2.0
//
// An MCP server, as far as it is protocol: messages come in, answers go out, and a host runs the calls.
//
// It speaks both eras of MCP at the same time. From 2026-07-28 on ("modern") each request says in _meta which version it is
// written for and needs nothing that went before. Before that ("legacy") a client begins with `initialize`, which settles
// the version for the process. A request belongs to the modern era if its _meta names a version, and to the legacy one
// otherwise. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "gateway/mcp/message.h"

namespace coffer::gateway {

struct McpCall {
  McpId id;
  std::string tool;
  std::string args_json;
  std::string traceparent;  // empty: none
};

// Runs calls. It answers each by McpServer::Answer, at once or later.
class McpHost {
 public:
  virtual ~McpHost() = default;
  // A list with the definitions of the tools that the client may call (tool_json.h).
  virtual std::shared_ptr<const Json> Tools() = 0;
  virtual void Begin(const McpCall& call) = 0;
  // The client does not want the answer any more; the host answers nevertheless, when the call has ended.
  virtual void Cancel(const McpId& id, const std::string& reason) = 0;
};

class McpServer {
 public:
  using Send = std::function<void(std::string line)>;
  McpServer(McpHost& host, Send send) : host_(host), send_(std::move(send)) {}

  void Receive(std::string_view line);
  // The result of a call, without what the era adds to it. Nothing is sent for a call that was cancelled.
  void Answer(const McpId& id, const Json& result);
  void Answer(const McpId& id, const McpError& error);
  // How far a call is, if its client has asked for that; `progress` must grow.
  void Progress(const McpId& id, double progress, const std::string& message);

  bool Waits(const McpId& id) const { return pending_.contains(id); }

 private:
  enum class Era { kLegacy, kModern };
  struct Pending {
    Era era = Era::kLegacy;
    std::string progress_token;  // JSON text; empty: none
    bool cancelled = false;
  };
  std::optional<McpError> FindEra(const McpMessage& message, Era* era) const;
  void HandleRequest(const McpMessage& message);
  void HandleNotification(const McpMessage& message);
  void Initialize(const McpMessage& message);
  void ListTools(const McpMessage& message, Era era);
  void CallTool(const McpMessage& message, Era era);
  void SendResult(const McpId& id, Era era, const Json& result);

  McpHost& host_;
  const Send send_;
  std::string legacy_version_;        // after `initialize`
  std::map<McpId, Pending> pending_;  // calls without an answer
};

}  // namespace coffer::gateway
