// SPDX-License-Identifier: Apache-2.0
//
// The gateway role: listens, then gives up everything (role.h), then opens the store and serves.
#pragma once

#include "base/unique_fd.h"
#include "daemon/config.h"

namespace coffer::daemon {

// The exit status. `warden` and `egress` are our ends of the sockets to the other roles.
int RunGateway(const Config& config, UniqueFd warden, UniqueFd egress);

}  // namespace coffer::daemon
