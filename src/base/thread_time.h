// SPDX-License-Identifier: Apache-2.0
//
// The CPU time of the calling thread. Unlike elapsed time it does not grow on a busy machine.
#pragma once

#include <time.h>

#include <chrono>

#include "base/clock.h"

namespace coffer {

inline Nanos ThreadCpuTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

}  // namespace coffer
