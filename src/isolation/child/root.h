// SPDX-License-Identifier: Apache-2.0
//
// The private root of a boundary: a read-only tmpfs that holds only what the plan names, entered by pivot_root.
//
// Runs in the child after clone: no heap, no locks, no formatting. Every function returns 0 or -errno and leaves
// the index of what it was at in `item`. The mount API with descriptors (Linux 5.2, mount_setattr 5.12) is used
// throughout, so that no path is looked up twice.
#pragma once

#include <cstdint>

#include "isolation/child/report.h"
#include "isolation/plan.h"

namespace coffer::isolation {

inline constexpr int kMaxBinds = 512;

// Descriptors of the detached trees, one per bind of the plan.
struct OpenedSources {
  int tree[kMaxBinds];
};

// Clones the mount of every bind that the supervisor has not cloned already. Must run before the old root is gone
// and before the identity changes.
long OpenSources(const BoundaryPlan& plan, OpenedSources* sources, uint32_t* item);

// Mounts the root tmpfs on top of "/" and returns its descriptor.
long MountRoot(const BoundaryPlan& plan);
// Makes tmpfs mounts, directories, links and files.
// The first four tmpfs mounts stay open; their descriptors are left in `tmpfs`.
long Populate(const BoundaryPlan& plan, int root, int32_t (&tmpfs)[4], uint32_t* item);
// Moves every opened source to its place.
long AttachSources(const BoundaryPlan& plan, const OpenedSources& sources,
                   const Admission& admission, int root, uint32_t* item);
// A /proc that shows only this pid namespace, without kernel-wide files. 1 if mounted, 0 if the host forbids it.
long MountProc(int root);
// A private /dev/pts.
long MountPts(int root);
// Makes the root read-only and pivots into it. The old root then lies on top of "/" until somebody detaches it; lookups
// already start below it.
long PivotInto(int root);

}  // namespace coffer::isolation
