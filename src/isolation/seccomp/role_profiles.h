// SPDX-License-Identifier: Apache-2.0
//
// The profiles of the daemon's roles: the default profile of boundaries, for programs that were
// trusted when they started, without what a role has no use for. The warden's refuses only what no
// process below it may ever do. daemon/role.h says what else a role gives up.
//
// Like those of boundaries they are compiled while we are built (builtin.h): the egress process of
// a call installs one in each call.
#pragma once

#include <cstddef>

#include "isolation/seccomp/profile.h"

namespace coffer::isolation {

// kCallEgress dials for calls: it accepts on the listeners it was given.
enum class RoleKind { kGateway, kEgress, kWarden, kCompiler, kCallEgress };
inline constexpr size_t kRoleKinds = 5;

Profile RoleProfile(RoleKind kind);

}  // namespace coffer::isolation
