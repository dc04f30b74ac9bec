// SPDX-License-Identifier: Apache-2.0
//
// The launch rung: a fresh boundary with the envelope applied, its layers compared with the floor.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "call/prepare.h"
#include "call/scratch.h"
#include "call/watch.h"
#include "isolation/boundary.h"
#include "isolation/plan.h"
#include "limits/cgroup.h"

namespace coffer::call {

struct Launched {
  std::unique_ptr<isolation::BoundaryPlan> plan;  // the boundary points to it
  Scratch scratch;                                // process level only
  limits::Cgroup cgroup;
  std::optional<isolation::Boundary> boundary;
  SupervisorStdio stdio;
  std::vector<limits::DiskWatch> disks;  // of every writable host directory
  policy::LayerSet layers;               // probed, if `probed`
  policy::LayerSet promised;             // what this level should have
  std::string cgroup_why;                // why a cgroup layer is missing
  bool probed = false;
  Nanos started_at{0};  // wall clock
};

struct LaunchOptions {
  policy::Level level = policy::Level::kContainer;  // never kAuto
  bool probe = false;                               // a receipt or a floor needs the layers
  bool cgroup_first = false;                        // the cgroup must exist before the child (v2)
};

// Nothing runs if this fails, and nothing of the attempt is left.
Result<Launched> Launch(const RunRequest& request, const Prepared& prepared,
                        const LaunchOptions& options);

}  // namespace coffer::call
