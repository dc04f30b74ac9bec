// SPDX-License-Identifier: Apache-2.0
//
// Sums what a directory tree holds, whatever a hostile program made of it: any depth, names of any length, entries that
// move or vanish while they are counted.
//
// The walk keeps the topmost kTopLevels directories open, and the last kOpenLevels. Those between
// are closed. If there is something left in one of them it is opened again on the way back, by ".."
// from below; if that is another directory by then, the tree was moved, and the sum is not known. A
// tree that grows at its top, by moving it into a new directory, is summed whatever the speed. No
// name is put together, no link is followed, no mount is crossed.
//
// What cannot be read is not zero: the answer says so, and the caller treats it as too much. A
// directory that we may not enter is left out only if it belongs to another user: then the payload,
// which has our uid or fewer rights, cannot enter it either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::limits {

inline constexpr size_t kTopLevels = 16;
inline constexpr size_t kOpenLevels = 112;

enum class ScanEnd : uint8_t {
  kComplete,
  kOutOfTime,
  kUnreadable,  // a directory is closed to us
  kMoved,       // a directory deeper than kTopLevels + kOpenLevels was moved meanwhile
};

struct DiskUse {
  uint64_t bytes = 0;  // allocated (st_blocks), each hard-linked inode once
  uint64_t inodes = 0;
  ScanEnd end = ScanEnd::kComplete;  // anything else: the real numbers are larger
  bool mount_below = false;          // something else is mounted in the tree, and was not counted
  uint64_t linked_outside = 0;       // files that have a further name, which is not in the tree
  uint64_t other_owners = 0;         // entries of another user or group than the tree's top
  bool complete() const { return end == ScanEnd::kComplete; }
};

// Sums the tree below `dir` until `budget` is spent. An error only if `dir` itself cannot be looked
// at. `visit` is told of each file and directory that was counted, before anything below it: what
// it is called by then may be another.
using VisitEntry = std::function<void(int parent, const std::string& name)>;
Result<DiskUse> ScanDisk(int dir, Nanos budget, const VisitEntry& visit = {});

// True if the blocks of a file also hold its extended attributes, so that a scan counts them. In a
// tmpfs and in btrfs they do not: there any number of attributes takes no block.
bool CountsAttributes(int dir);

}  // namespace coffer::limits
