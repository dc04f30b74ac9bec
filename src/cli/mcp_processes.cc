// SPDX-License-Identifier: Apache-2.0
#include "cli/mcp_processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "call/run/port_forwarder.h"
#include "call/warden/protocol.h"
#include "cli/session_forwards.h"
#include "gateway/mcp/tool_json.h"

namespace coffer::cli {
namespace {

constexpr size_t kTail = size_t{16} << 10;   // of the output, without an offset
constexpr size_t kPiece = size_t{64} << 10;  // of the output, in one answer
constexpr size_t kMostLog = size_t{4} << 20;

}  // namespace

struct McpProcesses::Process {
  gateway::ProcessState state;
  call::ReadyCall ready;
  UniqueFd channel;  // to its ports
  std::string log;
  std::optional<Error> stopped;
  std::unique_ptr<call::Collector> collector;  // while it runs
};

McpProcesses::McpProcesses(LocalLadder& ladder, call::LocalLauncher& launcher)
    : ladder_(ladder), launcher_(launcher) {}

McpProcesses::~McpProcesses() = default;

bool McpProcesses::offered() const {
  const auto tool = ladder_.state().shelf().Find(gateway::kProcessRunner);
  return tool != nullptr && tool->manifest.background.has_value();
}

McpProcesses::Answer McpProcesses::Call(gateway::ProcessTool tool, std::string_view args_json,
                                        call::ToolRequest request) {
  const Result<gateway::ProcessAsk> ask = gateway::ReadProcessAsk(tool, args_json);
  if (!ask.ok()) {
    return gateway::ProcessErrorJson(ask.error());
  }
  if (tool == gateway::ProcessTool::kStart) {
    return Start(*ask, std::move(request));
  }
  if (tool == gateway::ProcessTool::kList) {
    std::vector<gateway::ProcessState> states;
    for (const std::unique_ptr<Process>& process : processes_) {
      states.push_back(process->state);
    }
    return gateway::ProcessResultJson(states, states.empty() ? "no process was started" : "");
  }
  Process* const process = Find(ask->process_id);
  if (process == nullptr) {
    return gateway::ProcessErrorJson(Refused("policy.process", "there is no such process",
                                             "list-processes names those there are"));
  }
  if (tool == gateway::ProcessTool::kRead) {
    return Read(*process, *ask);
  }
  return Stop(*process);
}

McpProcesses::Answer McpProcesses::Start(const gateway::ProcessAsk& ask,
                                         call::ToolRequest request) {
  if (const Status room = MakeRoom(ask.ports); !room.ok()) {
    return gateway::ProcessErrorJson(room.error());
  }
  auto process = std::make_unique<Process>();
  request.identity.tool = gateway::kProcessRunner;
  request.args_json = PrintJson({{"command", ask.command}});
  request.background = true;
  request.ports = ask.ports;
  std::variant<call::ReadyCall, call::ToolReply> climbed = ladder_.ladder().Climb(request);
  if (const auto* answered = std::get_if<call::ToolReply>(&climbed)) {
    return gateway::McpToolResult(*answered);
  }
  process->ready = std::move(std::get<call::ReadyCall>(climbed));
  call::RunRequest& run = process->ready.run;
  UniqueFd theirs;  // until the runner has it
  if (!ask.ports.empty()) {
    Result<call::SocketPair> pair = call::MakeSocketPair(SOCK_SEQPACKET);
    if (!pair.ok()) {
      return gateway::McpToolResult(
          ladder_.ladder().DescendUnlaunched(process->ready, pair.error()));
    }
    process->channel = std::move(pair->first);
    theirs = std::move(pair->second);
    run.port_channels.push_back(theirs.get());
  }
  AddPorts(run);
  std::variant<call::RunChannels, call::ToolReply> launched =
      ladder_.ladder().Launch(process->ready, launcher_);
  if (const auto* answered = std::get_if<call::ToolReply>(&launched)) {
    return gateway::McpToolResult(*answered);
  }
  process->collector = std::make_unique<call::Collector>(
      std::move(std::get<call::RunChannels>(launched)),
      [log = &process->log](call::Stream, std::string_view piece) {
        log->append(piece.substr(0, kMostLog - std::min(kMostLog, log->size())));
      });
  process->state = {process->ready.call_id(), ask.command, ask.ports, true};
  processes_.push_back(std::move(process));
  return gateway::ProcessResultJson({processes_.back()->state}, "started");
}

JsonPieces McpProcesses::Read(Process& process, const gateway::ProcessAsk& ask) const {
  const std::string& log = process.log;
  const size_t tail = log.size() > kTail ? log.size() - kTail : 0;
  const size_t from = std::min<uint64_t>(ask.offset.value_or(tail), log.size());
  std::string piece = log.substr(from, kPiece);
  const uint64_t next = from + piece.size();
  return gateway::ProcessOutput(process.state, std::move(piece), next);
}

Json McpProcesses::Stop(Process& process) {
  if (process.state.running) {
    if (!process.stopped) {
      process.stopped = Refused("policy.cancelled", "stopped by the MCP client");
    }
    launcher_.Signal(process.state.id, SIGTERM);
  }
  return gateway::ProcessResultJson({process.state}, process.state.running ? "asked to end" : "");
}

Status McpProcesses::MakeRoom(const std::vector<uint16_t>& ports) {
  size_t running = 0, reachable = 0;
  for (const std::unique_ptr<Process>& process : processes_) {
    if (!process->state.running) {
      continue;
    }
    ++running;
    reachable += process->state.ports.empty() ? 0 : 1;
    for (const uint16_t port : ports) {
      const std::vector<uint16_t>& taken = process->state.ports;
      if (std::find(taken.begin(), taken.end(), port) != taken.end()) {
        return Refused("policy.ports",
                       fmt::format("the port {} is that of process {}", port, process->state.id),
                       "choose another, or end that process with stop-process");
      }
    }
  }
  if (running >= kMostProcesses || (!ports.empty() && reachable >= kMostReachable)) {
    return Refused("policy.background",
                   fmt::format("{} processes run, {} of them with ports; at most {} and {} may",
                               running, reachable, kMostProcesses, kMostReachable),
                   "end one of them with stop-process");
  }
  const auto oldest =
      std::find_if(processes_.begin(), processes_.end(),
                   [](const std::unique_ptr<Process>& one) { return !one->state.running; });
  if (processes_.size() >= kMostProcessesKept && oldest != processes_.end()) {
    processes_.erase(oldest);
  }
  return {};
}

McpProcesses::Process* McpProcesses::Find(const std::string& id) {
  const auto found =
      std::find_if(processes_.begin(), processes_.end(),
                   [&](const std::unique_ptr<Process>& one) { return one->state.id == id; });
  return found == processes_.end() ? nullptr : found->get();
}

void McpProcesses::AddPorts(call::RunRequest& run) const {
  if (run.envelope.workspace.empty() && run.project.empty()) {
    return;  // a call that sees nothing of the session's files reaches nothing of its processes either
  }
  const auto taken = [&run](uint16_t port) {  // by another process of the session
    return std::any_of(run.forwards.begin(), run.forwards.end(),
                       [&](const call::RunRequest::Forward& one) { return one.port == port; });
  };
  for (const std::unique_ptr<Process>& process : processes_) {
    const std::vector<uint16_t>& ports = process->state.ports;
    const bool fits = std::none_of(ports.begin(), ports.end(), taken) &&
                      run.forwards.size() + ports.size() <= call::kMostForwards &&
                      run.port_channels.size() < call::kMostPortChannels;
    if (!process->state.running || !process->channel || !fits) {
      continue;
    }
    for (const uint16_t port : process->state.ports) {
      run.forwards.push_back({port, static_cast<uint32_t>(run.port_channels.size())});
    }
    run.port_channels.push_back(process->channel.get());
  }
}

void McpProcesses::AddTo(std::vector<pollfd>* polled) const {
  for (const std::unique_ptr<Process>& process : processes_) {
    if (process->collector != nullptr) {
      process->collector->AddTo(polled);
    }
  }
}

void McpProcesses::Handle(const std::vector<pollfd>& polled) {
  for (const std::unique_ptr<Process>& process : processes_) {
    if (process->collector == nullptr) {
      continue;
    }
    process->collector->ReadReady(polled);
    if (process->collector->done()) {
      Settle(*process);
    }
  }
}

void McpProcesses::Settle(Process& process) {
  call::Collected collected = process.collector->Take();
  process.collector.reset();
  process.channel.Reset();
  collected.stopped = std::move(process.stopped);
  launcher_.Reap(process.state.id);
  const call::ToolReply reply = ladder_.ladder().Descend(process.ready, std::move(collected));
  process.state.running = false;
  process.state.outcome = reply.outcome;
  process.state.exit_code = reply.exit_code;
  process.state.exit_signal = reply.exit_signal;
  process.state.error_class = reply.error_class;
  process.state.error_message = reply.error_message;
}

void McpProcesses::EndAll() {
  for (const std::unique_ptr<Process>& process : processes_) {
    if (process->state.running) {
      process->stopped = Refused("policy.cancelled", "stopped because the MCP client has left");
      launcher_.Kill(process->state.id);
    }
  }
  const auto runs = [](const std::unique_ptr<Process>& one) { return one->state.running; };
  while (std::any_of(processes_.begin(), processes_.end(), runs)) {
    std::vector<pollfd> polled;
    AddTo(&polled);
    (void)::poll(polled.data(), polled.size(), -1);
    Handle(polled);
  }
}

}  // namespace coffer::cli
