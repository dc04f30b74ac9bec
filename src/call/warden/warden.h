// SPDX-License-Identifier: Apache-2.0
//
// The warden: the only privileged role of the daemon. It starts a runner process for every call that a manifest allows,
// kills those it is asked to kill, and knows nothing else.
//
// It parses no JSON, no TOML and no HTTP, makes no connection and holds no secret. The gateway that
// asks may have been broken into, so what it asks for is compared with the table that the monitor
// handed over (table.h, check.h); without a table nothing is launched. It never waits for a peer:
// it talks over sockets only, and a peer that does not read loses its answer. When the gateway is
// gone, so are all calls.
#pragma once

#include "base/result.h"
#include "call/warden/check.h"
#include "call/warden/launcher.h"

namespace coffer::call {

// Ends of the sockets to the other roles.
struct WardenSockets {
  int gateway = -1;  // requests
  int monitor = -1;  // tables
  int egress = -1;   // the door of the role that dials for calls; runners alone send there
};

// Serves until the gateway or the monitor has closed its end; then kills what still runs and returns.
// `make_tools` is for calls that call tools.
Status RunWarden(const WardenSockets& sockets, const WardenRules& rules,
                 const MakeToolsServer& make_tools);

}  // namespace coffer::call
