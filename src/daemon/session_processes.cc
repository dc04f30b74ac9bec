// SPDX-License-Identifier: Apache-2.0
#include "daemon/session_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

#include "call/run/port_forwarder.h"
#include "call/warden/protocol.h"

namespace coffer::daemon {
namespace {

bool IsRunning(const gateway::ProcessView& view) { return view.state == "running"; }

// Who sees nothing of the session's files reaches nothing of its processes; nor does what has no network of its own.
bool SharesSession(const call::RunRequest& run) {
  return !run.envelope.workspace.empty() && run.envelope.level == policy::Level::kContainer;
}

}  // namespace

Status SessionProcesses::MakeRoom(std::list<Process>& processes, const call::RunRequest& run) {
  size_t running = 0;
  size_t reachable = 0;
  for (const Process& process : processes) {
    if (!IsRunning(process.view)) {
      continue;
    }
    ++running;
    reachable += process.view.ports.empty() ? 0 : 1;
    for (const uint16_t port : run.ports) {
      if (std::find(process.view.ports.begin(), process.view.ports.end(), port) !=
          process.view.ports.end()) {
        return Refused("policy.ports",
                       fmt::format("the port {} is process {}'s in this session", port,
                                   process.view.process_id),
                       "choose another, or end that process");
      }
    }
  }
  if (running >= kMostRunning || (!run.ports.empty() && reachable >= call::kMostPortChannels)) {
    return Refused(
        "policy.background",
        fmt::format("the session has {} processes, {} of them with ports; at most {} and "
                    "{} run at the same time",
                    running, reachable, kMostRunning, call::kMostPortChannels),
        "end one of them");
  }
  for (auto old = processes.begin(); old != processes.end() && processes.size() >= kMostKept;) {
    if (IsRunning(old->view)) {
      ++old;
    } else {
      places_.erase(old->view.process_id);
      old = processes.erase(old);
    }
  }
  return {};
}

Result<SessionProcesses::Given> SessionProcesses::Connect(call::ReadyCall& call) {
  Given given;
  call::RunRequest& run = call.run;
  if (call.request.identity.session_id.empty() || !SharesSession(run)) {
    return given;
  }
  const std::lock_guard lock(mutex_);
  if (!run.background && !sessions_.contains(call.request.identity.session_id)) {
    return given;
  }
  std::list<Process>& processes = sessions_[call.request.identity.session_id];
  UniqueFd own;
  if (run.background) {
    TRY(MakeRoom(processes, run));
  }
  if (!run.ports.empty()) {
    TRY_ASSIGN(call::SocketPair pair, call::MakeSocketPair(SOCK_SEQPACKET));
    own = std::move(pair.first);
    given.push_back(std::move(pair.second));
    run.port_channels.push_back(given.back().get());
  }
  for (const Process& process : processes) {
    if (!IsRunning(process.view) || !process.channel ||
        run.forwards.size() + process.view.ports.size() > call::kMostForwards) {
      continue;
    }
    UniqueFd copy(::fcntl(process.channel.get(), F_DUPFD_CLOEXEC, 3));
    if (!copy) {
      return HostFault("internal", "there is no descriptor left for the session's ports");
    }
    for (const uint16_t port : process.view.ports) {
      run.forwards.push_back({port, static_cast<uint32_t>(run.port_channels.size())});
    }
    run.port_channels.push_back(copy.get());
    given.push_back(std::move(copy));
  }
  if (run.background) {
    Process process;
    process.view.process_id = call.call_id();
    process.view.session_id = call.request.identity.session_id;
    process.view.tool = call.request.identity.tool;
    process.view.ports = run.ports;
    process.view.started_at = call.receipt.requested_at;
    process.channel = std::move(own);
    processes.push_back(std::move(process));
    places_[call.call_id()] = {call.request.identity.session_id, std::prev(processes.end())};
  }
  return given;
}

void SessionProcesses::Print(const std::string& call_id, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (const auto found = places_.find(call_id); found != places_.end()) {
    found->second.process->log.append(text);  // bounded as the call's output is
  }
}

void SessionProcesses::End(const std::string& call_id, const call::ToolReply& reply) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(call_id);
  if (found == places_.end()) {
    return;
  }
  Process& process = *found->second.process;
  process.channel.Reset();
  process.view.state = "ended";
  process.view.outcome = reply.outcome;
  process.view.exit_code = reply.exit_code;
  process.view.exit_signal = reply.exit_signal;
  process.view.error_class = reply.error_class;
  process.view.error_message = reply.error_message;
  process.view.ended_at = WallTime();
}

void SessionProcesses::Forget(const std::string& session_id) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(session_id);
  std::erase_if(places_, [&](const auto& one) { return one.second.session == session_id; });
}

std::vector<gateway::ProcessView> SessionProcesses::List(const std::string& session_id) const {
  const std::lock_guard lock(mutex_);
  std::vector<gateway::ProcessView> views;
  if (const auto found = sessions_.find(session_id); found != sessions_.end()) {
    for (const Process& process : found->second) {
      views.push_back(process.view);
    }
  }
  return views;
}

std::optional<gateway::ProcessView> SessionProcesses::Find(const std::string& session_id,
                                                           const std::string& process_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(process_id);
  return found == places_.end() || found->second.session != session_id
             ? std::nullopt
             : std::optional(found->second.process->view);
}

std::optional<gateway::ProcessLogView> SessionProcesses::ReadLog(const std::string& session_id,
                                                                 const std::string& process_id,
                                                                 uint64_t offset,
                                                                 size_t limit) const {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(process_id);
  if (found == places_.end() || found->second.session != session_id) {
    return std::nullopt;
  }
  const Process& process = *found->second.process;
  gateway::ProcessLogView view;
  view.offset = std::min<uint64_t>(offset, process.log.size());
  view.text = process.log.substr(view.offset, limit);
  view.next = view.offset + view.text.size();
  view.ended = !IsRunning(process.view) && view.next == process.log.size();
  return view;
}

}  // namespace coffer::daemon
