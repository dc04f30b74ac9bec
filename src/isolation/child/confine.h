// SPDX-License-Identifier: Apache-2.0
//
// The steps that take power away from a process for good. Each returns 0 or -errno; none can be undone.
//
// Runs in the child after clone: no heap, no locks, no formatting.
#pragma once

#include <cstdint>
#include <string>

#include "isolation/child/report.h"

namespace coffer::isolation {

// A network of its own, for the calling process: nothing but a loopback device, which is down. Gives descriptors of the
// namespace and of a socket in it; `network` is -errno if that fails.
void MakeNetwork(int32_t* network, int32_t* socket);

// Raises the loopback device of the network that `socket` belongs to.
long RaiseLoopback(int socket);

// Takes `uid` as the only identity; drops supplementary groups where the kernel lets us (always as root).
// `groups_allowed` is false where setgroups is denied in this user namespace.
long EnforceIdentity(uint32_t uid, bool groups_allowed);

// Bounds what this user namespace may take of the kernel's per-user counters: inotify, fanotify,
// and namespaces beyond the ones that the boundary itself has. False if the host does not let us (a
// read-only /proc/sys); then only the host's own limits hold. Needs the host's /proc and
// CAP_SYS_RESOURCE in the namespace.
bool EnforceCounters();

// Joins the cgroups whose `tasks` files the supervisor opened (v1; on v2 the child is born in its own).
long JoinCgroups(const BoundaryAdmission& admission, uint32_t* item);

long EnforceRlimits(const BoundaryAdmission& admission, uint32_t* item);

// No core dumps: RLIMIT_CORE is 1. No file is so small, and the kernel starts no program that dumps are piped to, which 0
// does not keep back (core(5); fs/coredump.c since 2.6.35). The filter keeps the limit, so this comes before it. Where the
// host's hard limit is 0 it stays 0.
long EnforceCoreLimit();

// A session keyring of its own, so that the host's keys cannot be searched.
long DetachKeyring();

// Empties the bounding and ambient sets and locks the securebits: from here on nothing can be gained.
long EnforceNoGain();

// Empties the inheritable, permitted and effective sets: after EnforceNoGain nothing is left, for good.
long EnforceNoCapabilities();

// No setuid program, file capability or looser filter from here on.
long EnforceNoNewPrivs();

// Plain personality, a name of its own, dies with the supervisor.
long EnforceInitPosture();

// 1 if the canary cannot be opened. 0 if it can: Landlock is not active then, even if its system calls succeeded.
long ProbeLandlock(const char* canary);

// No ptrace, no core, and no user inside owns /proc/1. The last step before the payload is started.
long EnforceNotDumpable();

}  // namespace coffer::isolation
