// SPDX-License-Identifier: Apache-2.0
//
// The calls of an MCP client to a wrapped server of another author. Each climbs the ladder before the server hears of it.
//
// The server is one process in one boundary for all calls (server_process.h). Its tools are those that were accepted
// (tool_pins.h), and their arguments are checked here, not by the server. A server that ends, hangs, floods or speaks nonsense
// is ended: its calls are answered with an error, and the next call starts it again. Not thread-safe; the owner polls.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "call/tool_shelf.h"
#include "cli/local_ladder.h"
#include "cli/mcp_conversation.h"
#include "cli/server_process.h"
#include "cli/tool_pins.h"
#include "gateway/mcp/client.h"
#include "gateway/mcp/foreign_tools.h"

namespace coffer::cli {

struct WrapRequest {
  policy::Manifest server;             // what its boundary is; its name is the prefix of its tools
  std::vector<std::string> run_words;  // `run`, flags, `--`, the command
  Nanos timeout{0};                    // of one call
  std::string receipt;                 // where `run_words` put the receipt of the server
};

class WrappedCalls : public McpWork, private gateway::McpClientHost {
 public:
  // Starts the server and waits until its tools are known. `ladder` outlives this.
  static coffer::Result<std::unique_ptr<WrappedCalls>> Open(LocalLadder& ladder,
                                                            WrapRequest request);
  ~WrappedCalls() override;

  void ListTools(const gateway::McpId& id) override;
  void Begin(const gateway::McpCall& call) override;
  void Cancel(const gateway::McpId& id, const std::string& reason) override;
  void AddTo(std::vector<pollfd>* polled) const override;
  void Handle(const std::vector<pollfd>& polled) override;
  bool idle() const override { return running_.empty() && waiting_.empty(); }
  void CancelAll(const std::string& reason) override;

  // Ends the server and says what it was denied, in words and with the flags that would allow it.
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    gateway::McpId id;
    call::ReadyCall ready;
    std::string tool;  // by the name that agents use
    Clock::time_point deadline;
    Nanos started{0};
    Clock::time_point told;
  };
  WrappedCalls(LocalLadder& ladder, WrapRequest request, ToolPins pins);

  // McpClientHost
  void Listed(const Json& tools) override;
  void Result(uint64_t ask, const Json& result) override;
  void Failed(uint64_t ask, const std::string& message) override;
  void Progressed(uint64_t ask, double progress, const std::string& message) override;
  void Broken(const std::string& why) override;

  Status StartServer();
  // The server is ended, and with it its calls.
  void GiveUp(const std::string& why);
  void StopServer();
  void ReadReceipt();
  void Start(const gateway::McpCall& call);
  void Descend(Running& running, audit::Receipt end, const Json* result);
  void Answer(const Running& running, const call::ToolReply& reply, const Json* result);
  void Expire();

  LocalLadder& ladder_;
  const WrapRequest request_;
  const ToolPins pins_;
  call::ToolShelf shelf_;
  std::unique_ptr<call::Ladder> climb_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<gateway::McpClient> client_;
  bool ready_ = false;                    // its tools are known
  std::optional<std::string> broken_;     // to be ended, when nothing of it is on the stack
  std::deque<Clock::time_point> starts_;  // lately
  Clock::time_point ready_by_;
  gateway::ForeignTools foreign_;
  std::set<std::string> blocked_;  // until they are reviewed
  std::set<std::string> told_;     // sentences that were said
  std::map<uint64_t, Running> running_;
  std::deque<gateway::McpCall> waiting_;
  std::map<std::string, std::string> denied_;  // what, and the flag that would allow it
};

}  // namespace coffer::cli
