// SPDX-License-Identifier: Apache-2.0
#include "limits/disk_growth.h"

#include <algorithm>

namespace coffer::limits {

void DiskGrowth::Look(const HeldFiles& held, const std::vector<uint64_t>& memory_devices) {
  Nanos soonest = std::chrono::seconds(1);
  uint64_t sum = 0;
  for (DiskWatch& watch : watches_) {
    DiskWatch::Growth growth = watch.Check(held, memory_devices);
    over_ = over_ || growth.over;
    sum += growth.bytes;
    bytes_ = std::max(bytes_, growth.bytes);
    inodes_ = std::max(inodes_, growth.inodes);
    if (!growth.unknown.empty()) {
      unknown_ = std::move(growth.unknown);
    }
    soonest = std::min(soonest, watch.NextCheck());
  }
  written_ += sum - std::min(sum, last_);
  last_ = sum;
  next_ = BootTime() + soonest;
}

void DiskGrowth::AtLeast(uint64_t bytes) { bytes_ = std::max(bytes_, bytes); }

}  // namespace coffer::limits
