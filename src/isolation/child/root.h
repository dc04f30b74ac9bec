// SPDX-License-Identifier: Apache-2.0
//
// The private root of a boundary: a read-only tmpfs that holds only what the plan names, entered by pivot_root.
//
// Runs in the child after clone: no heap, no locks, no formatting. Every function returns 0 or -errno and leaves
// the index of what it was at in `item`. What is bound goes by descriptor (Linux 5.2, mount_setattr 5.12).
#pragma once

#include <cstdint>

#include "isolation/child/plan_block.h"
#include "isolation/child/report.h"

namespace coffer::isolation {

// Mounts the root tmpfs on top of "/", makes it the current directory and returns its descriptor. Absolute paths still
// lead to the old root.
long MountRoot();
// Makes directories, with the tmpfs mounts that belong on them, then files and links. The first four tmpfs mounts stay
// open; their descriptors are left in `kept`, if it is given.
long Populate(const PlanBlock& plan, int root, int32_t (*kept)[4], uint32_t* item);
// The sources of every bind, as detached mounts: those that the supervisor cloned (`given`, by the
// index of the bind) and those that are opened here, by name, so the old root must still be there.
// Leaves them in `trees`.
long OpenSources(const PlanBlock& plan, const int32_t* given, int32_t (&trees)[kMaxTrees],
                 uint32_t* item);
// Puts them in their places and closes those that were opened here. Once the root is entered no link in a mounted
// directory can lead such a place out of it.
long AttachBinds(const PlanBlock& plan, const int32_t (&trees)[kMaxTrees], int root,
                 uint32_t* item);
// A read-only mount of the file, directory or link `from` at `at`, both absolute inside. Neither is
// followed if it is a link.
long Cover(int root, const char* from, const char* at);
// Pivots into the root. The old root then lies on top of "/" until DetachOldRoot; lookups already start below it.
long PivotInto(int root);
// Writes the contents of the files of `ends` behind those of the same names.
long AppendToFiles(const PlanBlock& ends, int root, uint32_t* item);
// Nothing can be made in the root any more.
long SealRoot(int root);
// Detaches the old root. The kernel waits for a grace period: the helper does it.
long DetachOldRoot();

}  // namespace coffer::isolation
