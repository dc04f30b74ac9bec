// SPDX-License-Identifier: Apache-2.0
//
// The background processes of an MCP client: calls of a declared tool that go on after their answer.
//
// Each climbs the whole ladder and has a receipt of its own, with the limits of the manifest's
// [background]. Later calls reach its ports through its channel (call/run/port_forwarder.h). They
// belong to this process: the kernel ends them with it, and EndAll ends them with their receipts.
// What they print is kept, bounded by the tool's limit of output. Not thread-safe.
#pragma once

#include <poll.h>

#include <list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "cli/local_ladder.h"
#include "gateway/mcp/process_tools.h"

namespace coffer::cli {

class McpProcesses {
 public:
  // Both outlive this.
  McpProcesses(LocalLadder& ladder, call::LocalLauncher& launcher);
  ~McpProcesses();

  // True if there are tools of processes: the declared tool that they call may run in the background.
  bool offered() const;
  // The result for the client. `request` says who asks, and in which session.
  using Answer = std::variant<Json, JsonPieces>;
  Answer Call(gateway::ProcessTool tool, std::string_view args_json, call::ToolRequest request);
  // What a call of the same session needs to reach the processes' ports.
  void AddPorts(call::RunRequest& run) const;

  void AddTo(std::vector<pollfd>* polled) const;
  void Handle(const std::vector<pollfd>& polled);
  // Kills all and waits until each has its receipt.
  void EndAll();

 private:
  struct Process;
  Answer Start(const gateway::ProcessAsk& ask, call::ToolRequest request);
  JsonPieces Read(Process& process, const gateway::ProcessAsk& ask) const;
  Json Stop(Process& process);
  Status MakeRoom(const std::vector<uint16_t>& ports);
  void Settle(Process& process);
  Process* Find(const std::string& id);

  LocalLadder& ladder_;
  call::LocalLauncher& launcher_;
  std::list<std::unique_ptr<Process>> processes_;  // the oldest first
};

}  // namespace coffer::cli
