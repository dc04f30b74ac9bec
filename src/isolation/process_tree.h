// SPDX-License-Identifier: Apache-2.0
//
// Ends a tree of processes that no pid namespace holds together (the process level).
//
// The supervisor is a child subreaper, so whatever loses its parent becomes its child and is found here, whatever its
// session or state. Repeats until nothing is left; a process that is still there after a minute is an error.
#pragma once

#include "base/result.h"

namespace coffer::isolation {

// Makes orphaned descendants ours. Call before the boundary is spawned.
Status AdoptOrphans();

// Kills and reaps every descendant of this process.
Status EndDescendants();

}  // namespace coffer::isolation
