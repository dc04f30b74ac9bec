// SPDX-License-Identifier: Apache-2.0
//
// The gateway role: listens, then gives up everything (role.h), then opens the store and serves.
#pragma once

#include "base/unique_fd.h"
#include "daemon/config.h"

namespace coffer::daemon {

// Our ends of the sockets to the other roles, and what else the monitor gives.
struct GatewaySockets {
  UniqueFd warden;
  UniqueFd egress;
  UniqueFd monitor;  // the operator's files, again (operator_files.h)
  UniqueFd wall;     // the entrance (gateway_wall.h), if there is one
};

// The exit status.
int RunGateway(const Config& config, GatewaySockets sockets);

}  // namespace coffer::daemon
