// SPDX-License-Identifier: Apache-2.0
//
// The tools and files of the service, for one request to /mcp: a question of MCP becomes one question to the service.
//
// It decides nothing. Calls climb the daemon's ladder in the turn of the caller's tenant; what a
// caller may list and read, the service says. Results are written on the thread that has them,
// never on the loop's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gateway/http/exchange.h"
#include "gateway/http/mcp_flights.h"
#include "gateway/mcp/process_tools.h"
#include "gateway/mcp/server.h"

namespace coffer::gateway {

// The caller, and its session.
struct McpCaller {
  std::shared_ptr<const Api> api;
  Identity who;
  std::shared_ptr<Asker> asker;
  std::string session_id;         // "": none; a tool's workspace is empty then
  bool ids_are_keys = false;      // an id of a request is used once in this session
  bool can_be_cancelled = false;  // by another request of this session
  std::optional<std::string> idempotency_key;
  std::optional<std::string> traceparent;  // of the head
  std::function<void()> cancelled;         // another request has cancelled this one
};

class McpServiceHost : public McpHost, public std::enable_shared_from_this<McpServiceHost> {
 public:
  explicit McpServiceHost(McpCaller client) : client_(std::move(client)) {}

  Json Capabilities() const override;
  void ListTools(const McpId& id) override;
  void Begin(const McpCall& call) override;
  void Cancel(const McpId& id, const std::string& reason) override;
  bool HandleOther(const McpRequest& request) override;

 private:
  struct Made;
  // A reply that turns the service's answer into MCP's; `not_found` is the code of what the service does not find.
  template <typename T>
  Reply<T> Answering(const McpId& id, std::function<Made(T&)> make,
                     McpErrorCode not_found = McpErrorCode::kInternal);
  void Deliver(const McpId& id, Made made, std::shared_ptr<void> room);
  void TellProgress(const McpId& id);
  CallRequest RequestOf(const McpCall& call) const;
  void Submit(const McpCall& call);
  // mcp_process_calls.cc
  void BeginProcess(const McpCall& call);
  void StartProcess(const McpCall& call, const ProcessAsk& ask);
  void ListProcesses(const McpId& id);
  void FindProcess(const McpId& id, ProcessTool kind, const ProcessAsk& ask);
  void ReadProcess(const McpId& id, const ProcessState& state, const ProcessAsk& ask);
  void StopProcess(const McpId& id, const ProcessState& state);
  void ListFiles(const McpRequest& request);
  void ReadFile(const McpRequest& request);

  const McpCaller client_;
  std::shared_ptr<McpFlight> flight_;
  std::shared_ptr<void> timer_;
  std::shared_ptr<void> room_;  // of the answer, until it is sent
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace coffer::gateway
