// SPDX-License-Identifier: Apache-2.0
//
// The kernel's own file systems of a boundary: /proc, /dev/pts, /sys/fs/cgroup.
//
// Runs in the child after clone: no heap, no locks, no formatting. Every function returns 0 or
// -errno unless it says more.
#pragma once

#include <cstdint>
#include <span>

#include "isolation/plan.h"

namespace coffer::isolation {

// A /proc that shows only this pid namespace, and of the kernel-wide files only `covers`. 1 if mounted, 0 if the host
// forbids it.
//
// It is mounted whole, the covers are put in place, and then it is narrowed to processes
// (subset=pid). What a mount holds stays in the kernel's cache of names, so it is found from then
// on; no other name is. `clock`: the boundary has a clock of its own, and needs no cover for what
// follows it.
long MountProc(std::span<const ProcCover> covers, int root, bool clock, uint32_t* item);

// The boundary's own cgroup, read-only, where programs look for their limits: all of it on v2, memory on v1. Without it
// they go by /proc/meminfo and sysinfo, so a host that forbids it stops nothing.
void MountCgroup(const char* type);

// A private /dev/pts, with few terminals: their number is the host's.
long MountPts();

}  // namespace coffer::isolation
