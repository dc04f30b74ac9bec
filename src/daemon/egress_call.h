// SPDX-License-Identifier: Apache-2.0
//
// The egress process of one call without a daemon: `cofferd egress-call`, started by `coffer run --allow` and by nothing
// else (ADR 38). The supervisor's side is call/run/egress_process.h.
//
// It reads its grants and what this host trusts, then gives up every file, capability and group, as root its uid too, and
// every system call that a proxy has no use for (role.h), and only then says that it is ready. It accepts on the
// listeners that the supervisor sends, answers DNS queries, and dials what its grants allow. It ends when the supervisor's
// end of the socket is closed.
#pragma once

namespace coffer::daemon {

// The first word of the command line that means this role.
inline constexpr const char* kEgressCallWord = "egress-call";

// The exit status.
int RunEgressCall();

}  // namespace coffer::daemon
