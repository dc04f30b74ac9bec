// SPDX-License-Identifier: Apache-2.0
//
// A Deadline becomes readable when a call's wall time is spent; NextCpuCheck says when to look at its CPU time again.
//
// The clock is CLOCK_BOOTTIME, so suspending the host does not extend a call. A Deadline kills nothing: the
// supervisor polls it and kills through the cgroup and the pid namespace. It does not bound CPU time: that is looked
// at when the tree could, on all its CPUs, at the earliest have spent it.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::limits {

class Deadline {
 public:
  // `from_now` must be positive.
  static Result<Deadline> Start(Nanos from_now);

  int fd() const { return timer_.get(); }  // POLLIN when spent
  bool Spent() const { return BootTime() >= at_; }
  Nanos at() const { return at_; }  // on BootTime()
  Nanos elapsed() const { return BootTime() - started_; }

 private:
  UniqueFd timer_;
  Nanos started_{0};
  Nanos at_{0};
};

inline constexpr Nanos kShortestCheck = std::chrono::milliseconds(2);
inline constexpr Nanos kLongestCheck = std::chrono::milliseconds(250);
// Without a memory cgroup the supervisor is the only memory limit: it looks at least this often.
inline constexpr Nanos kMemoryCheck = std::chrono::milliseconds(10);
// How often memory is looked at that the memory cgroup does not count: socket buffers on v1, file locks.
inline constexpr Nanos kUncountedCheck = std::chrono::milliseconds(100);

// How long CPU usage need not be looked at: (cap - used) / cpus, between the two bounds above. The overshoot is then
// at most kShortestCheck on every CPU, plus scheduling.
Nanos NextCpuCheck(Nanos used, Nanos cap, unsigned cpus);

// The CPUs this process may run on, at least 1.
unsigned UsableCpus();

}  // namespace coffer::limits
