// SPDX-License-Identifier: Apache-2.0
//
// sysinfo(2), answered with the boundary's own figures: its memory cap, its processes, the time since it began.
//
// The C library takes the machine's memory from this call, and so do the JVM and compilers: with
// the host's figures they would plan for memory that the boundary does not have. The load is always
// zero and there is no swap.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>

#include "base/clock.h"

namespace coffer::isolation {

class SysinfoServer {
 public:
  explicit SysinfoServer(uint64_t memory) : memory_(memory), began_(BootTime()) {}

  // 0, or -EFAULT if the caller's memory cannot be written.
  long Take(int notify_fd, const seccomp_notif& request) const;

 private:
  uint64_t memory_;
  Nanos began_;
};

}  // namespace coffer::isolation
