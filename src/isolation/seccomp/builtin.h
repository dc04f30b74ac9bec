// SPDX-License-Identifier: Apache-2.0
//
// The built-in profiles and those of the daemon's roles as finished programs for the target
// architecture, written at build time by gen/main.cc.
#pragma once

#include <linux/filter.h>

#include <span>

#include "isolation/seccomp/profile.h"
#include "isolation/seccomp/role_profiles.h"
#include "policy/envelope.h"

namespace coffer::isolation {

// Points into constant memory. kImported has no built-in program: the span is empty, and InstallFilter refuses it.
std::span<const sock_filter> BuiltinFilter(policy::SyscallProfile profile, FilterOptions options);

// Likewise. Every role has one.
std::span<const sock_filter> RoleFilter(RoleKind kind);

}  // namespace coffer::isolation
