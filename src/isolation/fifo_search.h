// SPDX-License-Identifier: Apache-2.0
//
// Fifos in a directory of the caller's that will be shown. No mount flag stops their use, so each is covered.
//
// The tree may be as hostile as an earlier payload could make it (tree_walk.h), and another boundary that may write to
// it can move directories during the search. What is returned is complete for one moment of it: a search during which
// a directory was moved is made again, a bounded number of times, and then the tree is refused. What cannot be looked
// into, and the boundary could enter, is refused. A fifo that another process makes later, or brings in from outside of
// the tree, is not seen: the search is about what is there when the call starts.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

inline constexpr size_t kMaxFifos = 64;
inline constexpr int kMaxFifoSearches = 6;

// A file in a directory that is shown, and that something else is mounted over.
struct CoveredFile {
  std::string path;  // relative to the directory
  dev_t dev = 0;
  // 0: the file may be gone by then, because only root can take it away, or because a mount below the directory holds
  // it, which is not shown. Otherwise the cover goes over this inode, or the boundary is not made.
  ino_t ino = 0;
};

// In no order. The moment is the start of the last search: since then no directory was renamed, by its time of change
// (of the file system's own clock: on a remote one, which has another, moves are not seen) or by inotify.
Result<std::vector<CoveredFile>> FindFifos(const HostPath& root);

}  // namespace coffer::isolation
