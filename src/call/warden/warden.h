// SPDX-License-Identifier: Apache-2.0
//
// The warden: the only privileged role of the daemon. It starts a runner process for every call it is asked to launch,
// kills those it is asked to kill, and knows nothing else.
//
// It parses no JSON, no TOML and no HTTP, opens no socket and holds no secret. The gateway that asks may have been broken
// into, so the warden looks at every mount itself: no link anywhere in the path, nothing too broad (by name or as an
// alias of such a directory) unless the operator allowed that at the start, nothing of the state directory but a
// session's own workspace, nothing writable that decides what later calls may do, and of the host's files no other way in than a mount. It cannot know whether a narrow mount is
// the one that the tool's manifest names, nor whose session or tenant it is: for that it has only the gateway's word.
// When the gateway is gone, so are all calls.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::call {

struct WardenRules {
  std::string sessions;  // the directory below which workspaces lie; empty: none
  std::vector<std::string>
      closed;  // no mount shows them, beside the state directory: the daemon's keys
  std::vector<std::string> relied;  // no writable mount shows them: manifests, configuration
  bool allow_broad = false;         // mounts that a manifest grants with dangerously_host
  uint32_t max_running = 256;       // more are refused, not queued
};

// What a request may not ask of the warden, whatever the gateway has allowed.
Status CheckRequest(const WardenRules& rules, const RunRequest& request);

// Serves `control` until the other end is closed; then kills what still runs and returns.
Status RunWarden(int control, const WardenRules& rules);

}  // namespace coffer::call
