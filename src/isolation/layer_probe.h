// SPDX-License-Identifier: Apache-2.0
//
// Finds the layers that are active in a boundary before its command runs, from /proc/PID of its init. The setup's own
// report does not count. Landlock shows nowhere in /proc, so init tries to open a canary that no rule grants, and
// reports.
#pragma once

#include <string>

#include "base/result.h"
#include "isolation/boundary.h"
#include "policy/layer.h"

namespace coffer::isolation {

struct ProbeExpectations {
  std::string cgroup_name;         // must show in /proc/PID/cgroup for the cgroup layers to count
  policy::LayerSet cgroup_layers;  // what that cgroup limits
  uint64_t workspace_bytes = 0;    // size of /workspace
  uint64_t open_files = 0;         // RLIMIT_NOFILE
  bool writable_mounts = false;  // without a quota of their own: then there is none over everything
};

// Fails only if init cannot be looked at at all.
Result<policy::LayerSet> ProbeLayers(const Boundary& boundary, const BoundaryPlan& plan,
                                     const ProbeExpectations& expected);

}  // namespace coffer::isolation
