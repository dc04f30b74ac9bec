// SPDX-License-Identifier: Apache-2.0
//
// Composes the plan of a process boundary: for hosts that forbid namespaces. No private root: the paths are the
// host's, and Landlock is what keeps everything but the runtime, a scratch directory and the named mounts away.
//
// Without Landlock this level would hold nothing, so it refuses. It does not hide that other files exist (stat is not
// Landlock's), nor other processes; mounts keep their own place, because nothing can be moved.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/compose.h"

namespace coffer::isolation {

// A directory with workspace/, tmp/ and in/ in it, which were opened when they were made: another
// process of the same user may have put something else under their names since.
struct ScratchPlace {
  std::string path;
  int workspace = -1;
  int tmp = -1;
  int in = -1;
};

Result<BoundaryPlan> ComposeProcess(const policy::Envelope& envelope, const OpenedRuntime& runtime,
                                    const std::vector<OpenedMount>& mounts,
                                    const ScratchPlace& scratch, bool privileged);

}  // namespace coffer::isolation
