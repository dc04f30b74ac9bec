// SPDX-License-Identifier: Apache-2.0
//
// The egress role's body: takes what the gateway wants sent, dials, and says how it went. It is the only role that
// connects anywhere, and it connects only to the receivers of the configuration it was started with.
//
// It has no store and opens no file but those that tell names and addresses apart (Landlock, where the kernel has it).
// Whatever the gateway says is hostile: see egress/deliver_protocol.h. It ends when the gateway's end of the socket is closed.
#pragma once

#include "base/result.h"
#include "daemon/config.h"

namespace coffer::daemon {

// No file is in reach any more but those that name resolution reads, not even what everybody may read. A kernel without
// Landlock leaves what the uid can read. Sets no_new_privs. There is no way back.
Status EnforceNoFiles();

// Loads what it needs, gives everything up, serves, and exits. `control` is the socket to the gateway.
[[noreturn]] void RunEgress(const Config& config, int control);

}  // namespace coffer::daemon
