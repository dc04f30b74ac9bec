// SPDX-License-Identifier: Apache-2.0
//
// A WallGuard ends a boundary at its wall time even if the supervisor is stuck.
//
// The supervisor's loop applies the wall cap, and looks at what the payload holds: copies of its descriptors, its
// processes, its files. A payload that found a way to keep the loop waiting there (a socket whose close lingers, say)
// would outlive its cap. So the kernel sends this process a signal a little later, and the handler kills init by its
// pidfd; the signal also ends most waits. It repeats until the guard is gone. One guard at a time per process.
#pragma once

#include <time.h>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::limits {

class WallGuard {
 public:
  // `pidfd` of the process to be killed; it must outlive the guard.
  static Result<WallGuard> Start(int pidfd, Nanos after);
  WallGuard(WallGuard&& other) noexcept;
  WallGuard& operator=(WallGuard&&) = delete;
  ~WallGuard();

 private:
  WallGuard() = default;
  timer_t timer_{};
  bool armed_ = false;
};

// How much later than the cap: the supervisor's own kill comes first, and says more.
inline constexpr Nanos kWallGrace = std::chrono::milliseconds(100);

}  // namespace coffer::limits
