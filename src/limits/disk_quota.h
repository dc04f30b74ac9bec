// SPDX-License-Identifier: Apache-2.0
//
// DiskWatch bounds what a call puts into a writable host directory (--rw, --out), where no tmpfs size does it.
//
// What holds where:
//   private places (/workspace, /tmp)   tmpfs size= and nr_inodes=: the write itself fails. Not this file.
//   any file anywhere                   RLIMIT_FSIZE: one file cannot exceed the cap; the write fails.
//   a host directory, in total          this: allocated bytes and inodes are summed at the start and again while the
//                                       call runs, and the supervisor kills it with limit.disk when the growth
//                                       exceeds the cap. Files that lost their name count while they are held
//                                       (held_files.h). It is a watch, not a wall: between two scans a call can
//                                       write past the cap, at most scan interval x disk speed.
//
// What is known to be held but cannot be measured (held_files.h says when) is charged with everything that the file
// system has lost since the start beyond what is seen: on a quiet disk that is exact, and on a busy one it errs against
// the call. What cannot be read at all is over the cap.
//
// A project quota (project_quota.h) is a wall, and is taken where it can be had. The watch goes on
// beside it. The disk-quota layer is claimed only if every writable host directory has one, or
// there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "limits/held_files.h"
#include "limits/project_quota.h"
#include "limits/tree_scan.h"
#include "policy/envelope.h"

namespace coffer::limits {

// When to scan again after a scan that took `scan`: when a writer of a gigabyte per second (the page cache takes that)
// could be at the cap, between 10 and 250 ms; but never so soon that more than a tenth of the time is spent scanning.
Nanos NextDiskCheck(uint64_t grown, uint64_t cap, Nanos scan);

// Whether the call reaches what is mounted in its directory. Nothing sums that.
enum class MountsBelow : uint8_t { kOutOfReach, kReachable };

class DiskWatch {
 public:
  // Duplicates `dir` and takes the first sum, from which growth is counted. A tree too large to sum within `budget` is
  // refused: a growth that cannot be known cannot be bounded. So is one with mounts in it that are reachable.
  static Result<DiskWatch> Start(int dir, const policy::Limits& caps,
                                 MountsBelow below = MountsBelow::kOutOfReach,
                                 Nanos budget = std::chrono::seconds(2));

  struct Growth {
    uint64_t bytes = 0;
    uint64_t inodes = 0;
    bool over = false;
    std::string unknown;  // why the growth cannot be known, and is over; empty: it is known
  };
  // `held` is what the boundary's processes hold without a name. `memory_devices` are those of memfds and of the
  // boundary's own tmpfs: a mapped file there is not on a disk.
  Growth Check(const HeldFiles& held, std::span<const uint64_t> memory_devices,
               Nanos budget = std::chrono::seconds(2));

  // How many files had a name outside of the directory at the start: what changes them changes those too.
  uint64_t linked_outside() const { return start_.linked_outside; }

  // How many files and directories had another user or group than the directory at the start.
  uint64_t other_owners() const { return start_.other_owners; }

  // The kernel enforces the caps.
  bool enforced() const { return quota_.has_value(); }
  // It has refused something, or is about to.
  bool Full() const { return quota_ && quota_->Full(); }

  // How long to wait before the next Check.
  Nanos NextCheck() const { return next_check_; }

 private:
  UniqueFd dir_;
  std::optional<ProjectQuota> quota_;
  DiskUse start_;
  uint64_t start_free_ = 0;
  uint64_t device_ = 0;
  bool overlay_ = false;
  uint64_t cap_bytes_ = 0;
  uint64_t cap_inodes_ = 0;
  Nanos next_check_ = std::chrono::milliseconds(20);
};

}  // namespace coffer::limits
