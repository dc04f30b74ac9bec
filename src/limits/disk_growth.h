// SPDX-License-Identifier: Apache-2.0
//
// How much a call has written into all of its writable host directories, over all scans.
//
// Each directory has a DiskWatch that says how much it has grown. DiskGrowth keeps the largest of each figure, and adds
// up every growth between two scans: at least that much was written to the disk, also if it was removed again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "limits/disk_quota.h"
#include "limits/held_files.h"

namespace coffer::limits {

class DiskGrowth {
 public:
  DiskGrowth() = default;
  explicit DiskGrowth(std::vector<DiskWatch> watches) : watches_(std::move(watches)) {}

  bool empty() const { return watches_.empty(); }
  // The kernel enforces the caps of all of them.
  bool enforced() const {
    return std::all_of(watches_.begin(), watches_.end(),
                       [](const DiskWatch& watch) { return watch.enforced(); });
  }
  // One of them has reached its caps, and the kernel refused more.
  bool Full() const {
    return std::any_of(watches_.begin(), watches_.end(),
                       [](const DiskWatch& watch) { return watch.Full(); });
  }
  // When to look for the first time.
  void LookAt(Nanos moment) { next_ = moment; }
  // The moment of BootTime of the next look.
  Nanos next() const { return next_; }

  // `held` are files without a name that the processes hold; `memory_devices` are those that are no disks.
  void Look(const HeldFiles& held, const std::vector<uint64_t>& memory_devices);
  // Also counts a place that has no watch.
  void AtLeast(uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  uint64_t inodes() const { return inodes_; }
  uint64_t written() const { return written_; }
  // Why the growth of a directory cannot be told; empty: it can.
  const std::string& unknown() const { return unknown_; }
  // A directory has grown past its cap.
  bool over() const { return over_; }

 private:
  std::vector<DiskWatch> watches_;
  Nanos next_{0};
  uint64_t bytes_ = 0;
  uint64_t inodes_ = 0;
  uint64_t last_ = 0;
  uint64_t written_ = 0;
  std::string unknown_;
  bool over_ = false;
};

}  // namespace coffer::limits
