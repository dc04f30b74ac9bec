// SPDX-License-Identifier: Apache-2.0
//
// The probe behind ProbeCgroups, over any CgroupFiles; and the choice of the parent of our v2 cgroups.
#pragma once

#include <string>

#include "limits/cgroup/files.h"
#include "limits/cgroup/host.h"
#include "limits/cgroup/mounts.h"

namespace coffer::limits {

CgroupHost ProbeCgroupsWith(const CgroupFiles& files, ProbeDepth depth = ProbeDepth::kAll);

// Which cgroup of `mount` becomes the parent of our boundaries, we being in cgroup `own`?
//
// The nearest of our ancestors that we may write (directory and cgroup.procs) and that distributes memory and pids; if
// none does, the nearest where that can be switched on without moving a process; then our own cgroup, after we moved to
// a leaf of it; then one that distributes at least some of it.
struct V2Plan {
  std::string dir;                // empty: none
  ControllerBits enabled = 0;     // what children of `dir` have already
  ControllerBits can_enable = 0;  // what can be switched on for them
  bool move_self = false;         // `dir` is our own cgroup, and not the root
  std::string why_not;            // if dir is empty
  std::string fix;
};
V2Plan PlanV2(const CgroupFiles& files, const CgroupMount& mount, const std::string& own);

}  // namespace coffer::limits
