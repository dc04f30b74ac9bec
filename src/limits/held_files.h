// SPDX-License-Identifier: Apache-2.0
//
// Space taken by files that have no name any more: deleted while open, or memfds. No directory shows them; the
// descriptors of the processes that hold them do. Not found: what is only mapped, or in flight inside a socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

namespace coffer::limits {

// Allocated bytes of the unnamed files on `device` that `pids` hold open, each once. Processes that vanish or may not
// be looked at count nothing.
uint64_t UnnamedBytes(std::span<const pid_t> pids, uint64_t device,
                      const std::string& proc = "/proc");

// The device number of memfds, anonymous shared memory and System V segments; 0 if it cannot be told.
uint64_t MemfdDevice();

}  // namespace coffer::limits
