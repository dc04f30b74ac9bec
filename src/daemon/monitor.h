// SPDX-License-Identifier: Apache-2.0
//
// The daemon's first process: prepares the state directory, makes the sockets between the roles,
// starts them, and waits.
//
// It parses nothing from outside. The roles live and die together: when one ends, the others are ended, and the service
// manager starts the daemon again. Each role dies with this process too, so nothing is ever left half.
#pragma once

#include "daemon/config.h"

namespace coffer::daemon {

// The exit status of the daemon.
int RunMonitor(const Config& config);

}  // namespace coffer::daemon
