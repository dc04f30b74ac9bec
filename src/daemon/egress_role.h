// SPDX-License-Identifier: Apache-2.0
//
// The body of the egress role: takes requests of the gateway, dials, and reports the result. It connects only to the
// receivers of the configuration it was started with.
//
// It has no store and opens no file but those that tell names and addresses apart (Landlock, where the kernel has it).
// Everything from the gateway is hostile input: see egress/deliver_protocol.h. It ends when the gateway's end of the
// socket is closed.
#pragma once

#include "base/result.h"
#include "daemon/config.h"

namespace coffer::daemon {

// Afterwards the process can open only the files that name resolution reads, not even files that every user may read.
// On a kernel without Landlock it can still open what its uid can read. Sets no_new_privs. It cannot be undone.
Status EnforceNoFiles();

// Loads what it needs, gives everything up, serves, and exits. `control` is the socket to the gateway.
[[noreturn]] void RunEgress(const Config& config, int control);

}  // namespace coffer::daemon
