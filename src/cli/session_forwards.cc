// SPDX-License-Identifier: Apache-2.0
#include "cli/session_forwards.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sys.h"
#include "call/run/port_forwarder.h"
#include "call/warden/protocol.h"
#include "cli/process_control.h"

namespace coffer::cli {

static_assert(kMostReachable == call::kMostPortChannels);

Result<std::vector<UniqueFd>> ForwardSessionPorts(const std::string& state,
                                                  const std::string& session,
                                                  call::RunRequest& request) {
  std::vector<UniqueFd> channels;
  if ((request.envelope.workspace.empty() && request.project.empty()) ||
      request.envelope.level == policy::Level::kProcess) {
    return channels;
  }
  TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(state));
  TRY_ASSIGN(const std::vector<ProcessInfo> processes, places.List(session));
  for (const ProcessInfo& process : processes) {
    if (!process.running || process.ports.empty() ||
        request.forwards.size() + process.ports.size() > call::kMostForwards) {
      continue;
    }
    TRY_ASSIGN(const UniqueFd dir, places.OpenProcess(session, process.id));
    TRY_ASSIGN(const std::optional<UniqueFd> keeper, FindKeeper(dir.get()));
    if (!keeper) {
      continue;  // it has just ended
    }
    TRY_ASSIGN(UniqueFd channel, AskKeeper(keeper->get(), {KeeperVerb::kChannel, 0}));
    if (!channel) {
      return Internal("isolation.process", "a background process gave no way to its ports");
    }
    for (const uint16_t port : process.ports) {
      request.forwards.push_back({port, static_cast<uint32_t>(request.port_channels.size())});
    }
    request.port_channels.push_back(channel.get());
    channels.push_back(std::move(channel));
  }
  return channels;
}

Status MakeRoomFor(const ProcessPlaces& places, const std::string& session,
                   const std::vector<uint16_t>& ports) {
  TRY_ASSIGN(const std::vector<ProcessInfo> processes, places.List(session));
  size_t running = 0;
  size_t reachable = 0;
  for (const ProcessInfo& process : processes) {
    if (!process.running) {
      continue;
    }
    ++running;
    reachable += process.ports.empty() ? 0 : 1;
    for (const uint16_t port : ports) {
      if (std::find(process.ports.begin(), process.ports.end(), port) != process.ports.end()) {
        return Refused(
            "policy.ports",
            fmt::format("the port {} is process {}'s in this session", port, process.id),
            fmt::format("choose another, or: coffer sessions stop {} {}", session, process.id));
      }
    }
  }
  if (running >= kMostProcesses || (!ports.empty() && reachable >= kMostReachable)) {
    return Refused("policy.background",
                   fmt::format("the session has {} processes, {} of them with ports; at most {} "
                               "and {} run at the same time",
                               running, reachable, kMostProcesses, kMostReachable),
                   fmt::format("end one of them: coffer sessions stop {} PROCESS", session));
  }
  size_t kept = processes.size();
  for (const ProcessInfo& process : processes) {
    if (kept >= kMostProcessesKept && !process.running) {
      TRY(places.RemoveProcess(session, process.id));
      --kept;
    }
  }
  return {};
}

}  // namespace coffer::cli
