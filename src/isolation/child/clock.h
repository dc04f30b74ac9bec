// SPDX-License-Identifier: Apache-2.0
//
// A time namespace for the payload: its monotonic and boot clocks begin with the call, and so does its uptime.
//
// It holds from the payload's execve on; init keeps the host's clocks, which it shares with the supervisor's stamps.
// Runs in the child after clone: no heap, no locks, no formatting.
#pragma once

#include <string>

namespace coffer::isolation {

// True if the next program has clocks of its own. Needs the host's /proc and CAP_SYS_TIME in the user namespace.
// `offsets` is ClockOffsets (machine_files.h); with "" nothing is done.
bool MakeClock(const std::string& offsets);

}  // namespace coffer::isolation
