// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "call/run/port_forwarder.h"
#include "call/warden/check.h"

namespace coffer::call {
namespace {

Error MoreInBackground(const TableEntry& entry, std::string_view part, std::string_view what) {
  return Refused(fmt::format("policy.entry.{}", part),
                 fmt::format("the manifest of {} does not allow {}", Printable(entry.tool), what),
                 "see [background] in the manifest, or read `coffer tools show`");
}

bool NoFilesOfSession(const RunRequest& request) {
  return request.envelope.workspace.empty() && request.project.empty();
}

}  // namespace

Status CheckBackground(const TableEntry& entry, const RunRequest& request) {
  if (request.background && !entry.background) {
    return MoreInBackground(entry, "background", "to run in the background");
  }
  if (request.background && NoFilesOfSession(request)) {
    return MoreInBackground(entry, "background", "a process without a session");
  }
  if (!request.ports.empty() && (!request.background || request.ports.size() > kMostPorts ||
                                 !policy::AllowsPorts(entry.background->ports, request.ports))) {
    return MoreInBackground(entry, "ports",
                            fmt::format("the ports {}", fmt::join(request.ports, ", ")));
  }
  if (request.ports.empty() && request.forwards.empty() && request.port_channels.empty()) {
    return {};
  }
  if (entry.envelope.level != policy::Level::kContainer ||
      request.envelope.level != policy::Level::kContainer) {
    return MoreInBackground(entry, "ports", "ports below the container level");
  }
  // What a call that sees nothing of its session may reach is nothing of its session either.
  if (NoFilesOfSession(request) || request.forwards.size() > kMostForwards) {
    return MoreInBackground(entry, "ports", "these ports of other processes");
  }
  const size_t first = request.ports.empty() ? 0 : 1;
  std::set<uint16_t> seen(request.ports.begin(), request.ports.end());
  if (seen.size() != request.ports.size() || request.port_channels.size() < first) {
    return MoreInBackground(entry, "ports", "a port twice, or none to be reached on");
  }
  for (const RunRequest::Forward& forward : request.forwards) {
    if (forward.port < policy::kFirstBackgroundPort || !seen.insert(forward.port).second ||
        forward.channel < first || forward.channel >= request.port_channels.size()) {
      return MoreInBackground(entry, "ports",
                              fmt::format("the port {} of another process", forward.port));
    }
  }
  return {};
}

}  // namespace coffer::call
