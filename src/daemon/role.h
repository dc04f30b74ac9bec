// SPDX-License-Identifier: Apache-2.0
//
// What a role of the daemon gives up before it looks at anything from outside (DESIGN section 5).
//
// The gateway and the egress role lose every privilege: an unprivileged uid of their own (if we are root), no group, no
// capability in any set, no_new_privs, not dumpable, and a filter that refuses new programs, listening, and everything
// an ordinary program has no use for. Only the egress role may make sockets, TCP and UDP, and connect them. The warden keeps its privilege, which is its task, and loses what it never needs.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace coffer::daemon {

enum class RoleKind { kGateway, kEgress, kWarden };

// Uids of our own that nobody else hands out; boundaries have theirs above 0x70000000 (ADR 4).
inline constexpr uid_t kGatewayUid = 0x6fff0001;
inline constexpr uid_t kEgressUid = 0x6fff0002;

// Dies with `parent`. Call it first; false if the parent is gone already.
[[nodiscard]] bool DieWith(pid_t parent);

// Gives up what the role must not have. There is no way back. Single-threaded at this point.
Status EnterRole(RoleKind kind);

}  // namespace coffer::daemon
