// SPDX-License-Identifier: Apache-2.0
//
// DiskWatch bounds what a call puts into a writable host directory (--rw, --out), where no tmpfs size does it.
//
// What holds where:
//   private places (/workspace, /tmp)   tmpfs size= and nr_inodes=: the write itself fails. Not this file.
//   any file anywhere                   RLIMIT_FSIZE: one file cannot exceed the cap; the write fails.
//   a host directory, in total          this: allocated bytes and inodes are summed at the start and again while the
//                                       call runs, and the supervisor kills it with limit.disk when the growth
//                                       exceeds the cap. It is a watch, not a wall: between two scans a call can
//                                       write past the cap, at most scan interval x disk speed. Files deleted
//                                       while open are found through the processes that hold them.
// Project quotas (ext4, xfs prjquota) would be a wall, but need a mount option or mkfs feature that the default
// installations of Debian and Ubuntu do not set, and CAP_SYS_ADMIN in the initial user namespace to assign a project;
// so they are not used. The disk-quota layer is therefore claimed only if there is no writable host directory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "policy/envelope.h"

namespace coffer::limits {

struct DiskUse {
  uint64_t bytes = 0;  // allocated (st_blocks), each hard-linked inode once
  uint64_t inodes = 0;
  bool complete = true;  // false: the time or depth ran out, the real numbers are larger
};

// Sums the tree below `dir`, without following links or crossing mounts, until `budget` is spent.
Result<DiskUse> ScanDisk(int dir, Nanos budget);

// When to scan again after a scan that took `scan`: when a writer of a gigabyte per second (the page cache takes that)
// could be at the cap, between 10 and 250 ms; but never so soon that more than a tenth of the time is spent scanning.
Nanos NextDiskCheck(uint64_t grown, uint64_t cap, Nanos scan);

class DiskWatch {
 public:
  // Duplicates `dir` and takes the first sum, from which growth is counted. A tree too large to sum within `budget` is
  // refused: a growth that cannot be known cannot be bounded.
  static Result<DiskWatch> Start(int dir, const policy::Limits& caps,
                                 Nanos budget = std::chrono::seconds(2));

  struct Growth {
    uint64_t bytes = 0;
    uint64_t inodes = 0;
    bool over = false;
  };
  // `pids` are the processes of the boundary, whose deleted but open files count. A tree that can no longer be summed
  // (too deep, too slow) is `over`.
  Result<Growth> Check(std::span<const pid_t> pids, Nanos budget = std::chrono::seconds(2));

  // How long to wait before the next Check.
  Nanos NextCheck() const { return next_check_; }

 private:
  UniqueFd dir_;
  DiskUse start_;
  uint64_t device_ = 0;
  uint64_t cap_bytes_ = 0;
  uint64_t cap_inodes_ = 0;
  Nanos next_check_ = std::chrono::milliseconds(20);
};

}  // namespace coffer::limits
