// SPDX-License-Identifier: Apache-2.0
//
// The private root of a boundary: a read-only tmpfs that holds only what the plan names, entered by pivot_root.
//
// Runs in the child after clone: no heap, no locks, no formatting. Every function returns 0 or -errno and leaves
// the index of what it was at in `item`. What is bound goes by descriptor (Linux 5.2, mount_setattr 5.12).
#pragma once

#include <cstdint>

#include "isolation/plan.h"

namespace coffer::isolation {

// Mounts the root tmpfs on top of "/", makes it the current directory and returns its descriptor. Absolute paths still
// lead to the old root.
long MountRoot();
// Makes directories, with the tmpfs mounts that belong on them, then files and links. The first four tmpfs mounts stay
// open; their descriptors are left in `kept`, if it is given.
long Populate(const RootPart& part, int root, int32_t (*kept)[4], uint32_t* item);
// Puts every bind in its place. `trees` holds what the supervisor cloned, by the index of the bind; the rest is opened
// here, by name, so the old root must still be there.
long AttachBinds(const RootPart& part, const int32_t* trees, int root, uint32_t* item);
// A /proc that shows only this pid namespace, without kernel-wide files. 1 if mounted, 0 if the host forbids it.
long MountProc();
// A private /dev/pts.
long MountPts();
// Makes the root read-only and pivots into it. The old root then lies on top of "/" until somebody detaches it; lookups
// already start below it.
long PivotInto(int root);
// Detaches the old root. The kernel waits for a grace period: best done when there is nothing else to do.
long DetachOldRoot();

}  // namespace coffer::isolation
