// SPDX-License-Identifier: Apache-2.0
#include "limits/deadline.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::limits {

Result<Deadline> Deadline::Start(Nanos from_now) {
  if (from_now <= Nanos(0)) {
    return Internal("limits.deadline", "a deadline must lie in the future");
  }
  const long fd = raw::Syscall(SYS_timerfd_create, CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0) {
    return sys::ErrnoError("limits.deadline", "cannot make a timer", fd);
  }
  Deadline deadline;
  deadline.timer_ = UniqueFd(static_cast<int>(fd));
  deadline.started_ = BootTime();
  deadline.at_ = deadline.started_ + from_now;
  itimerspec when{};
  when.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(deadline.at_).count();
  when.it_value.tv_nsec = (deadline.at_ % std::chrono::seconds(1)).count();
  const long set = raw::Syscall(SYS_timerfd_settime, deadline.timer_.get(), TFD_TIMER_ABSTIME,
                                raw::Arg(&when), 0);
  if (set < 0) {
    return sys::ErrnoError("limits.deadline", "cannot set a timer", set);
  }
  return deadline;
}

Nanos NextCpuCheck(Nanos used, Nanos cap, unsigned cpus) {
  const Nanos left = std::max(cap - used, Nanos(0)) / std::max(cpus, 1U);
  return std::clamp(left, kShortestCheck, kLongestCheck);
}

unsigned UsableCpus() {
  unsigned long mask[128] = {};  // 8192 CPUs
  const long bytes = raw::Syscall(SYS_sched_getaffinity, 0, sizeof(mask), raw::Arg(mask));
  unsigned count = 0;
  for (long i = 0; i < bytes / static_cast<long>(sizeof(mask[0])); ++i) {
    count += static_cast<unsigned>(__builtin_popcountl(mask[i]));
  }
  return std::max(count, 1U);
}

}  // namespace coffer::limits
