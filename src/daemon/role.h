// SPDX-License-Identifier: Apache-2.0
//
// Drops the privileges of a role of the daemon before it reads anything from outside.
//
// The gateway, the egress role and the compiler of manifests lose every privilege: an unprivileged
// uid of their own (if we are root), no group, no capability in any set, no_new_privs, not
// dumpable, and a filter that refuses new programs, listening, and everything an ordinary program
// has no use for. Only the egress role may make sockets, TCP and UDP, and connect them. The
// compiler reads files and changes none. The warden keeps its privilege, which is its task, and
// loses what it never needs.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <string>

#include "base/result.h"
#include "isolation/seccomp/role_profiles.h"

namespace coffer::daemon {

using isolation::RoleKind;  // kCallEgress: egress_call.h, call_egress_role.h

// Uids of our own that no distribution hands out; boundaries have theirs above 0x70000000 (ADR 4).
inline constexpr uid_t kGatewayUid = 0x6fff0001;
inline constexpr uid_t kEgressUid = 0x6fff0002;
inline constexpr uid_t kCompilerUid = 0x6fff0003;
inline constexpr uid_t kCallEgressUid = 0x6fff0004;  // not kEgressUid: that role holds secrets

// Dies with `parent`. Call it first; false if the parent is gone already.
[[nodiscard]] bool DieWith(pid_t parent);

// Puts these descriptors at kFirstKept and after, in their order, and closes every other one above stderr. What a role
// does not need of its parent is gone: above all the monitor's end to the warden. False if it cannot.
inline constexpr int kFirstKept = 3;
[[nodiscard]] bool KeepDescriptors(std::initializer_list<int> kept);

// From here on this process changes files only in `directory`, and removes names in `removes_in` (may be empty), by
// Landlock where the kernel has it (Linux 5.19). Started by an ordinary user the gateway shares that user's uid, and so
// cannot write the user's manifests. Single-threaded at this point.
Status EnforceWritesOnlyIn(const std::string& directory, const std::string& removes_in);

// Gives up what the role must not have. There is no way back. Single-threaded at this point.
Status EnterRole(RoleKind kind);

}  // namespace coffer::daemon
