// SPDX-License-Identifier: Apache-2.0
//
// Which process ran a call: a pid that cannot be mistaken for a later process with the same number.
//
// A pid is reused, a pid with its start time is not until the machine restarts, and then the boot id differs. Recovery
// uses it to find what is left of a call. A pid means something only in its own pid namespace.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace coffer::store {

struct Supervisor {
  int64_t pid = 0;
  uint64_t start_time = 0;  // field 22 of /proc/PID/stat, proc(5)
  std::string boot_id;      // /proc/sys/kernel/random/boot_id
  bool operator==(const Supervisor&) const = default;
};

// Not found: no such process.
Result<Supervisor> SupervisorOf(int64_t pid);
Result<Supervisor> ThisProcess();

// False only if that process is certainly gone: an Error counts as "may be alive". A zombie is gone.
Result<bool> IsAlive(const Supervisor& supervisor);

}  // namespace coffer::store
