// SPDX-License-Identifier: Apache-2.0
//
// What a boundary has used so far, as measured by its cgroups (cgroup.h) or, where there are none, a walk over
// its process tree (tree_usage.h).
//
// A field that was not measured is 0; `Cgroup::layers()` says what is measured by the kernel. Numbers of the
// kernel are totals of everything that ever ran in the boundary, dead or alive.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace coffer::limits {

struct Usage {
  Nanos cpu{0};              // user and system time of the whole tree
  uint64_t memory = 0;       // bytes now
  uint64_t memory_peak = 0;  // bytes, the most there was
  // Of file locks and netlink queues, which no memory cgroup counts, as looks saw them: for a boundary whose `memory` is a
  // cgroup's. Not part of the two above.
  uint64_t uncounted_peak = 0;
  uint64_t with_uncounted = 0;  // bytes now of both together, without caches; 0: a look saw none
  uint64_t pids = 0;            // processes and threads now, init included
  uint64_t pids_peak = 0;       // the most there were, init included
  uint64_t io_bytes = 0;        // to and from block devices
  uint64_t oom_kills = 0;       // processes the kernel killed because the memory cap was reached
  uint64_t pids_denied = 0;     // forks and threads refused because the process cap was reached
  std::string unreadable;       // why what a process uses cannot be told; empty: it can
};

// The larger of two measurements, field by field: measurements of one boundary never shrink except `memory`, `pids`.
void KeepPeaks(const Usage& earlier, Usage& later);

}  // namespace coffer::limits
