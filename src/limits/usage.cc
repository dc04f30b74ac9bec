// SPDX-License-Identifier: Apache-2.0
#include "limits/usage.h"

#include <algorithm>

namespace coffer::limits {

void KeepPeaks(const Usage& earlier, Usage& later) {
  later.cpu = std::max(later.cpu, earlier.cpu);
  later.memory_peak = std::max({later.memory_peak, earlier.memory_peak, later.memory});
  later.uncounted_peak = std::max(later.uncounted_peak, earlier.uncounted_peak);
  later.pids_peak = std::max({later.pids_peak, earlier.pids_peak, later.pids});
  later.io_bytes = std::max(later.io_bytes, earlier.io_bytes);
  later.oom_kills = std::max(later.oom_kills, earlier.oom_kills);
  later.pids_denied = std::max(later.pids_denied, earlier.pids_denied);
  if (later.unreadable.empty()) {
    later.unreadable = earlier.unreadable;
  }
}

}  // namespace coffer::limits
