// SPDX-License-Identifier: Apache-2.0
//
// The rlimits every boundary gets, cgroups or not: what is counted per process, and the net below the supervisor.
//
// The table is built before clone and applied after it (isolation/child/confine.h). Hard equals
// soft (but for CPU, where SIGXCPU comes first, and the stack, which programs raise), and nothing
// inside has the capability to raise it. RLIMIT_NPROC counts per user namespace since Linux 5.14;
// on older kernels it counts all processes of the uid, which is why the cgroup's pids.max is the
// limit that is promised. RLIMIT_CPU counts one process, not the tree, so it only ends what a dead
// supervisor left.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "policy/envelope.h"

namespace coffer::limits {

struct RlimitEntry {
  int resource = 0;  // RLIMIT_*
  uint64_t soft = 0;
  uint64_t hard = 0;
  bool operator==(const RlimitEntry&) const = default;
};

struct RlimitTable {
  static constexpr size_t kCapacity = 16;
  std::array<RlimitEntry, kCapacity> entries{};
  size_t count = 0;

  const RlimitEntry* Find(int resource) const;
};

// With `cgroup_memory` false, RLIMIT_DATA is added as a backstop far above the cap: a program that runs into it sees
// ENOMEM instead of the typed error, so the supervisor's own watch must come first. `foreign_tasks` is what counts
// against the boundary's uid already: 0 if it has a user namespace or a uid of its own, CountTasksOf(uid) otherwise.
// `host_files`: files of the host may be written, so no file may exceed the disk cap; a tmpfs has a size of its own.
RlimitTable BuildRlimits(const policy::Limits& caps, bool cgroup_memory, uint64_t foreign_tasks = 0,
                         bool host_files = true);

// The processes and threads that `uid` runs now, from /proc. Milliseconds; only for the process level.
Result<uint64_t> CountTasksOf(uid_t uid);

}  // namespace coffer::limits
