// SPDX-License-Identifier: Apache-2.0
//
// Waiting for the kernel, or for a process of ours, to be done with a cgroup: a little longer each time, and not for
// ever.
#pragma once

#include <sys/syscall.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "base/sys.h"

namespace coffer::limits {

// Waits from 20 us to 5 ms, and says when patience has ended.
class Backoff {
 public:
  explicit Backoff(Nanos patience) : end_(BootTime() + patience) {}

  bool Wait() {
    if (BootTime() >= end_) {
      return false;
    }
    const timespec pause{0, next_.count()};
    raw::Syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, raw::Arg(&pause), 0);
    next_ = std::min<Nanos>(next_ * 2, std::chrono::milliseconds(5));
    return true;
  }

 private:
  Nanos end_;
  Nanos next_ = std::chrono::microseconds(20);
};

}  // namespace coffer::limits
