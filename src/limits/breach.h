// SPDX-License-Identifier: Apache-2.0
//
// Which cap did a call breach? Pure: measurements and events in, at most one Breach out.
//
// A breach is what ends a call (exit 122). Reaching a cap and being told so by the kernel is not: fork answering
// EAGAIN, a write answering ENOSPC and truncated output leave the program running, and are reported as `breached` in
// the receipt. But when the program then dies or fails, the cap is why, and Explain says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "limits/usage.h"
#include "policy/envelope.h"

namespace coffer::limits {

enum class Cap : uint8_t { kCpu, kWall, kMemory, kProcesses, kDisk, kIo, kOutput };
std::string_view CapName(Cap cap);   // "cpu", as in the receipt's `limits`
std::string_view CapClass(Cap cap);  // "limit.cpu", the receipt's error.class

struct Breach {
  Cap cap = Cap::kCpu;
  std::string message;  // "used 10.02s of CPU, the cap is 10s"
  std::string hint;     // "raise it with --cpu"
  std::string_view error_class() const { return CapClass(cap); }
};

// What the supervisor saw besides usage.
struct Events {
  Nanos wall{0};              // elapsed
  bool wall_spent = false;    // the deadline fired
  uint64_t output_bytes = 0;  // written by the call, before truncation
  uint64_t disk_bytes =
      0;  // in the writable place that holds the most, beyond what was there before
  uint64_t disk_inodes = 0;
  std::string disk_unknown;  // why what is in a writable place cannot be told; empty: it can
  int exit_signal = 0;       // of the payload: SIGXCPU and SIGXFSZ are rlimits speaking
  bool failed = false;       // the payload ended with a non-zero status or a signal
  // No cgroup counts refused forks (an ordinary user: RLIMIT_NPROC refuses them). A tree that was seen as large as its cap
  // then counts as one that was refused more.
  bool refusals_unseen = false;
};

// While the call runs: must it be killed now? CPU, wall, memory (an OOM kill, or the sum without a cgroup), disk, I/O.
std::optional<Breach> FindBreach(const policy::Limits& caps, const Usage& usage,
                                 const Events& events);

// When it has ended by itself and failed: the cap that explains it, which is FindBreach, and also refused forks.
std::optional<Breach> ExplainFailure(const policy::Limits& caps, const Usage& usage,
                                     const Events& events);

// Whether the receipt's `limits.<cap>.breached` is true: ended or not, the cap was reached.
bool Reached(Cap cap, const policy::Limits& caps, const Usage& usage, const Events& events);

}  // namespace coffer::limits
