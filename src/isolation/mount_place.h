// SPDX-License-Identifier: Apache-2.0
//
// Which inode a mount covers that lies within another mount.
//
// Such a mount is attached by a name in a tree of the host, and a neighbour on the host can rename the directories of that
// tree until the mount is attached. A read-only mount of `.git/hooks` would then lie over another directory, and the real
// one could be written. So the supervisor notes the inode that the mount has to cover, and init attaches it there or
// refuses the call (child/root.cc). It is the inode that was examined for the mount itself, because such a mount shows a
// file in its own place. Only a mount point of the host covers another one: the directory or file beneath it.
//
// Mounts on parts of the host's /usr are not compared: only root can rename those.
#pragma once

#include <vector>

#include "base/result.h"
#include "isolation/compose.h"

namespace coffer::isolation {

// Sets `place_dev` and `place_ino` of the mounts that lie in an earlier one, and removes those whose place is not shown,
// because it lies behind a mount point of the host. Refused: what is in its place no longer.
Status FindPlaces(std::vector<OpenedMount>& mounts);

}  // namespace coffer::isolation
