// SPDX-License-Identifier: Apache-2.0
//
// The calls that are allowed only with some arguments: clone, socket, ioctl, fcntl, prctl, memory of huge pages, modes
// with setuid bits and a few more. The other half of profiles.cc.
#pragma once

#include <sched.h>

#include <cstdint>
#include <span>

#include "isolation/seccomp/profile.h"

namespace coffer::isolation {

// From which profile on a call is allowed.
enum class Tier : uint8_t { kStrict, kDefault, kCompat, kNever };

// What makes a namespace. CLONE_NEWTIME is not among them: to clone(2) it is a signal number.
inline constexpr uint64_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                            CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                            CLONE_NEWNET;

// What isatty, stty and non-blocking I/O use.
std::span<const unsigned> HarmlessIoctls();

void AddArgumentRules(Tier tier, FilterOptions options, Profile* profile);

// Hands an exclusive flock to the supervisor (lock_server.h).
void AskForLocks(Profile& profile);

}  // namespace coffer::isolation
