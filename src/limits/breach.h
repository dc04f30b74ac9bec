// SPDX-License-Identifier: Apache-2.0
//
// Which cap did a call breach? Pure: measurements and events in, at most one Breach out.
//
// A breach is exit 122. Most end the call at once. Three leave the program running, because the
// kernel answers it with an error: a refused fork or thread (EAGAIN), a full place (ENOSPC) and
// truncated output. Refused forks and threads are a breach however the program ends: with fewer of
// them its result may be incomplete, and its exit code need not say so. A full place is a breach if
// the program then fails; truncated output is one if the caller says so. In the receipt all of them
// are `breached`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "limits/usage.h"
#include "policy/envelope.h"

namespace coffer::limits {

enum class Cap : uint8_t { kCpu, kWall, kMemory, kProcesses, kDisk, kIo, kOutput };
std::string_view CapClass(Cap cap);  // "limit.cpu", the receipt's error.class

struct Breach {
  Cap cap = Cap::kCpu;
  std::string message;  // "used 10.02s of CPU, the cap is 10s"
  std::string hint;     // "raise it with --cpu"
  std::string_view error_class() const { return CapClass(cap); }
};

// Events that the supervisor saw beside the usage figures.
struct Events {
  Nanos wall{0};              // elapsed
  bool wall_spent = false;    // the deadline fired
  uint64_t output_bytes = 0;  // written by the call, before truncation
  uint64_t disk_bytes = 0;    // growth of the writable place that holds the most
  uint64_t disk_inodes = 0;
  std::string disk_unknown;  // why what is in a writable place cannot be told; empty: it can
  // A private place that ended full: writes to it failed.
  struct FullPlace {
    std::string name;       // "/tmp (also /dev/shm)"
    std::string_view flag;  // "--tmp"
    uint64_t bytes = 0;     // what it holds
    uint64_t inodes = 0;
    bool of_files = false;  // there is room for bytes, but not for another file
  };
  std::optional<FullPlace> full_place;
  int exit_signal = 0;  // of the payload: SIGXCPU and SIGXFSZ are rlimits speaking
  bool failed = false;  // the payload ended with a non-zero status or a signal
  // No cgroup counts refused forks (an ordinary user: RLIMIT_NPROC refuses them; threads are
  // counted by isolation/seccomp/thread_gate.h). The rlimit then leaves room for kSpareTasks more
  // than the cap, so that a tree that wanted more processes than its cap can be seen to be larger.
  bool refusals_unseen = false;
};
inline constexpr uint64_t kSpareTasks = 1;

// While the call runs: must it be killed now? CPU, wall, memory (an OOM kill, or the sum without a cgroup), disk, I/O.
std::optional<Breach> FindBreach(const policy::Limits& caps, const Usage& usage,
                                 const Events& events);

// Gives a breach of the wall time its hint again, once all is counted: refused forks or threads may be the reason.
void ExplainWall(const Usage& usage, Breach& breach);

// When it has ended by itself, whatever its status: were processes or threads refused?
std::optional<Breach> FindRefusedTasks(const policy::Limits& caps, const Usage& usage,
                                       const Events& events);

// When it has ended by itself and failed: the cap that explains it. FindBreach, a full place, and FindRefusedTasks.
std::optional<Breach> ExplainFailure(const policy::Limits& caps, const Usage& usage,
                                     const Events& events);

// Whether the receipt's `limits.<cap>.breached` is true: ended or not, the cap was reached.
bool Reached(Cap cap, const policy::Limits& caps, const Usage& usage, const Events& events);

}  // namespace coffer::limits
