// SPDX-License-Identifier: Apache-2.0
//
// The calls of an MCP client to a wrapped server of another author (wrapped_server.h), and its
// reads of prompts and resources (wrapped_reads.h). Each climbs the ladder before the server hears
// of it, and has an answer and a receipt, whatever the server does.
//
// Arguments are checked here, not by the server, and so is what it answers. A server that has ended
// is started again by the next call. Not thread-safe; the owner polls.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/local_ladder.h"
#include "cli/mcp_conversation.h"
#include "cli/waiting_calls.h"
#include "cli/wrapped_server.h"

namespace coffer::cli {

class WrappedCalls : public McpWork, private WrappedServer::Caller {
 public:
  // Starts the server and waits until its tools are known. `ladder` outlives this.
  static Result<std::unique_ptr<WrappedCalls>> Open(LocalLadder& ladder, WrapRequest request);
  ~WrappedCalls() override;

  Json Capabilities() const override;
  void ListTools(const gateway::McpId& id) override;
  void Begin(const gateway::McpCall& call) override;
  void Cancel(const gateway::McpId& id, const std::string& reason) override;
  // Prompts and resources; what else the server may offer is refused by name.
  bool HandleOther(const gateway::McpRequest& request) override;
  void AddTo(std::vector<pollfd>* polled) const override { wrapped_.AddTo(polled); }
  void Handle(const std::vector<pollfd>& polled) override;
  bool idle() const override { return running_.empty() && waiting_.empty(); }
  void CancelAll(const std::string& reason) override;
  void Rest() override;

  // Ends the server and says what it was denied.
  void End() { wrapped_.End(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    gateway::McpId id;
    call::ReadyCall ready;
    std::string tool;    // by the name that agents use
    std::string method;  // of the client's request
    Clock::time_point deadline;
    Nanos started{0};
    Clock::time_point told;
    double progress = 0;  // that was told
  };
  WrappedCalls(LocalLadder& ladder, WrapRequest request, ToolPins pins);

  // WrappedServer::Caller
  void TakeResult(uint64_t ask, const Json& result) override;
  void TakeFailure(uint64_t ask, int64_t code, const std::string& message) override;
  void TakeProgress(uint64_t ask, double progress, const std::string& message) override;
  void ServerEnded(const std::string& why) override;

  void Start(const gateway::McpCall& call);
  void Refuse(const gateway::McpCall& call, const Error& error);
  call::Ladder& LadderOf(const Running& running) const;
  void Descend(Running& running, audit::Receipt end, const Json* result);
  void Answer(const Running& running, const call::ToolReply& reply, const Json* result);
  void Expire();

  LocalLadder& ladder_;
  WrappedServer wrapped_;
  std::unique_ptr<call::Ladder> climb_;
  std::unique_ptr<call::Ladder> climb_reads_;
  std::map<uint64_t, Running> running_;
  WaitingCalls waiting_;
};

}  // namespace coffer::cli
