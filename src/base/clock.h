// SPDX-License-Identifier: Apache-2.0
//
// Clocks. Durations are measured on the boot-time clock, which goes on while the host sleeps, so suspending a
// machine never extends a call. Wall-clock time appears in records only.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace coffer {

using Nanos = std::chrono::nanoseconds;

// CLOCK_BOOTTIME. Async-signal-safe.
inline Nanos BootTime() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

// CLOCK_REALTIME since 1970.
inline Nanos WallTime() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

// RFC 3339 with milliseconds, UTC: "2026-01-31T23:59:59.123Z".
std::string FormatTime(Nanos since_epoch);

}  // namespace coffer
