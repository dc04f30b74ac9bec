// SPDX-License-Identifier: Apache-2.0
//
// The calls of an MCP client, each climbing the whole ladder in this process, several at the same time.
//
// All of them share one session, which is made for the client and ended with it, or is one that the
// user named. A call's request id is its idempotency key within this process, so that a request
// that is sent twice runs once. More calls than `kAtOnce` wait for their turn. Not thread-safe; the
// owner polls.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "cli/local_ladder.h"
#include "cli/local_sessions.h"
#include "cli/mcp_conversation.h"
#include "cli/mcp_processes.h"
#include "cli/waiting_calls.h"
#include "gateway/mcp/server.h"

namespace coffer::cli {

class McpCalls : public McpWork {
 public:
  static constexpr size_t kAtOnce = 16;

  // `session` empty: one is made, and ended by End. `ladder` outlives this.
  static Result<std::unique_ptr<McpCalls>> Open(LocalLadder& ladder, const std::string& session);

  ~McpCalls() override;

  void ListTools(const gateway::McpId& id) override;
  void Begin(const gateway::McpCall& call) override;
  void Cancel(const gateway::McpId& id, const std::string& reason) override;
  // Files of the session are resources. Those of a project are not: they are the user's, and there may be many.
  Json Capabilities() const override;
  bool HandleOther(const gateway::McpRequest& request) override;

  void AddTo(std::vector<pollfd>* polled) const override;
  void Handle(const std::vector<pollfd>& polled) override;
  bool idle() const override { return running_.empty() && waiting_.empty(); }
  void CancelAll(const std::string& reason) override;
  void Rest() override;
  // Ends the background processes and the session that was made. Call it when idle.
  Status End();

 private:
  McpCalls(LocalLadder& ladder, LocalSessions::Held session, bool own, std::string process_token);
  struct Running;
  call::ToolRequest RequestOf(const gateway::McpCall& call) const;
  void Start(const gateway::McpCall& call);
  void Finish(const gateway::McpId& id, const call::ToolReply& reply);
  void TellProgress(Running& running);

  LocalLadder& ladder_;
  call::LocalLauncher launcher_;
  McpProcesses processes_;
  LocalSessions::Held session_;
  const bool own_session_;
  const std::string process_token_;  // the ids of another process's requests are other requests
  std::list<std::unique_ptr<Running>> running_;
  WaitingCalls waiting_;
};

}  // namespace coffer::cli
