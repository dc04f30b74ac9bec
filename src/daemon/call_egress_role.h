// SPDX-License-Identifier: Apache-2.0
//
// The role that dials for the calls of the daemon: one process, a proxy for each boundary (ADR 49).
//
// Runners, and nothing else, send it calls through its door, a seqpacket socket: a socket of the
// call, the grants, a memory file for the log (call/run/egress_messages.h). It is not the role that
// delivers events (egress_role.h): it parses what payloads and strangers send, so it holds no
// receiver, no file, and no secret but the values that requests are searched for. Calls share no
// rule, connection, name or certificate; what they share is this process, its one thread and its
// memory.
//
// What this host trusts is read when it starts. On SIGHUP the monitor starts another one for the
// same door and tells this one, which ends when its last call has.
//
// If it dies, the calls that used it end with egress.ended, and the monitor starts it again. What waits in its door is
// served then.
#pragma once

namespace coffer::daemon {

// Loads what it needs, gives everything up, serves, and exits. `door` is its end of the socket.
[[noreturn]] void RunCallEgress(int door);

}  // namespace coffer::daemon
