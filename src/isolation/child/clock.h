// SPDX-License-Identifier: Apache-2.0
//
// A time namespace for the payload: its monotonic and boot clocks begin with the call, and so does its uptime.
//
// It holds from the payload's execve on; init keeps the host's clocks, which it shares with the supervisor's stamps.
// Runs in the child after clone: no heap, no locks, no formatting.
#pragma once

#include <string>

namespace coffer::isolation {

// What to write for clocks that begin now, or "" if this kernel cannot: before Linux 6.3 a child made by vfork may not
// change its clocks. For the supervisor.
std::string ClockOffsets();

// True if the next program has clocks of its own. Needs the host's /proc and CAP_SYS_TIME in the user namespace.
bool MakeClock(const std::string& offsets);

}  // namespace coffer::isolation
