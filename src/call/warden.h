// SPDX-License-Identifier: Apache-2.0
//
// The warden: the only privileged role of the daemon. It starts a runner process for every call it is asked to launch,
// kills those it is asked to kill, and knows nothing else.
//
// It parses no JSON, no TOML and no HTTP, opens no socket and holds no secret. The gateway that asks may have been broken
// into, so a request is bounded by rules that the warden was started with: a workspace lies below the session directory,
// and broad mounts are refused unless the operator allowed them at the start. When the gateway is gone, so are all calls.
#pragma once

#include <string>

#include "base/result.h"
#include "call/run_request.h"

namespace coffer::call {

struct WardenRules {
  std::string sessions;        // the directory below which workspaces lie; empty: none
  bool allow_broad = false;    // mounts that a manifest grants with dangerously_host
  uint32_t max_running = 256;  // more are refused, not queued
};

// What a request may not ask of the warden, whatever the gateway has allowed.
Status CheckRequest(const WardenRules& rules, const RunRequest& request);

// Serves `control` until the other end is closed; then kills what still runs and returns.
Status RunWarden(int control, const WardenRules& rules);

}  // namespace coffer::call
