// SPDX-License-Identifier: Apache-2.0
//
// The cgroup of a boundary, and the limits that stand in where there is none.
#pragma once

#include <vector>

#include "base/result.h"
#include "call/run/launch.h"
#include "limits/cgroup/host.h"

namespace coffer::call {

struct Cgroups {
  limits::CgroupHost host;
  std::vector<isolation::Rlimit> rlimits;  // they depend on the cgroup controllers
};

// Finds the cgroup controllers of the host, and sets the rlimits that stand in for missing ones. `launched` gets the
// reasons.
Status ProbeCgroup(const RunRequest& request, const Prepared& prepared, Cgroups& cgroups,
                   Launched& launched);

Status MakeCgroup(const RunRequest& request, const Prepared& prepared, const Cgroups& cgroups,
                  Launched& launched);

}  // namespace coffer::call
