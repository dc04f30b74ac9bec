// SPDX-License-Identifier: Apache-2.0
//
// Detached mount trees of host paths, made by a privileged supervisor and moved into place by the child.
//
// Id-mapped (Linux 5.12): inside, what belongs to the directory's owner belongs to the boundary's user, and what the
// boundary writes belongs to the directory's owner on disk; files of other users belong to the overflow uid. An
// ordinary user needs none of this: its boundary has its own uid.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

// A user namespace that maps the owner (uid, gid) of `path` to `boundary_uid`. Costs a short-lived process.
Result<UniqueFd> MakeIdMap(const HostPath& path, uint32_t boundary_uid);

// A detached clone of the mount at `path`, not recursive, id-mapped by `id_map`. A file system that
// cannot be id-mapped is an error for kWrite; for kRead the plain tree is returned, which shows
// less, never more.
Result<UniqueFd> CloneTree(const HostPath& path, const UniqueFd& id_map, policy::Access access);

// A detached clone of `path`, not recursive, with the owners that its files have.
Result<UniqueFd> CloneTree(const HostPath& path);

}  // namespace coffer::isolation
