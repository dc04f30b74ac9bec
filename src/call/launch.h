// SPDX-License-Identifier: Apache-2.0
//
// The launch rung: a fresh boundary with the envelope applied, its layers compared with the floor.
#pragma once

#include "base/result.h"
#include "call/begin.h"
#include "call/prepare.h"
#include "call/scratch.h"
#include "limits/cgroup.h"

namespace coffer::call {

struct Launched {
  Scratch scratch;  // process level only
  limits::Cgroup cgroup;
  std::vector<limits::DiskWatch> disks;  // of every writable host directory
  policy::LayerSet layers;               // probed, if `probed`
  policy::LayerSet promised;             // what this level should have
  std::string cgroup_why;                // why a cgroup layer is missing
  std::string io_why;  // why block I/O is not counted by a cgroup, where it should be
  bool probed = false;
  Nanos started_at{0};  // wall clock
  Begun begun;          // last: what is inside ends before its cgroup and its files are removed
};

struct LaunchOptions {
  policy::Level level = policy::Level::kContainer;  // never kAuto
  bool probe = false;                               // a receipt or a floor needs the layers
  bool cgroup_first = false;                        // the cgroup must exist before the child (v2)
};

// Goes on with `begun`, if there is one for this level; otherwise begins here. Nothing runs if this fails, and nothing
// of the attempt is left.
Result<Launched> Launch(const RunRequest& request, const Prepared& prepared,
                        const LaunchOptions& options, Begun begun = {});

}  // namespace coffer::call
