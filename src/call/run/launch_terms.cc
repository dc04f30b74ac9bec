// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch_terms.h"

#include "call/run/launch_tools.h"
#include "call/run/port_forwarder.h"
#include "isolation/child/report.h"

namespace coffer::call {
namespace {

Status CheckProcessLevel(const RunRequest& request) {
  if (!request.publish.empty()) {
    return Refused("policy.publish", "--publish needs the container level",
                   "leave out --level process; `coffer doctor` says what this host lacks");
  }
  if (!request.egress.empty()) {
    return Refused("policy.egress", "network needs the container level",
                   "leave out --level process (in a manifest: isolation.level = \"container\"); "
                   "`coffer doctor` says what this host lacks");
  }
  if (request.envelope.overlay) {
    return Refused("policy.overlay", "--ro-overlay (files.overlay) needs the container level",
                   "leave out --level process; `coffer doctor` says what this host lacks");
  }
  if (request.envelope.tty) {
    return Refused("policy.tty", "a terminal of its own needs --level container");
  }
  return {};
}

}  // namespace

Status CheckTerms(const RunRequest& request, policy::Level level) {
  if (level == policy::Level::kProcess) {
    TRY(CheckProcessLevel(request));
  }
  if (request.egress.hold && request.access == nullptr) {
    return Refused("policy.egress", "--hold is for coffer run at a terminal",
                   "name the hosts instead: --allow HOST");
  }
  if (PortSocketsOf(request) > isolation::kMostPortSockets) {
    return Refused("policy.egress", "network beside that many ports of a session",
                   "leave out --publish, or end processes of the session");
  }
  return request.tools_server == nullptr ? Status() : CheckTools(request, level);
}

}  // namespace coffer::call
