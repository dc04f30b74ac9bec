// SPDX-License-Identifier: Apache-2.0
//
// TreeUsage adds up what a process tree uses, from /proc: the stand-in where no cgroup may be made.
//
// The tree is everything below init: a pid namespace's pid 1, or a child subreaper, so orphans stay in it. It is
// walked through /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN), or found by scanning /proc where that is missing.
//
// Processes: a dead one counts while its parent has not reaped it, as everywhere; unless the parent is init, which is about to
// and may be slower than who makes them.
// CPU: own time of the living plus the time of children they reaped. A process that ignores SIGCHLD makes the kernel
// forget its children's time, so what was seen while they lived is kept, and the larger of both counts.
// Memory: resident pages first, which overstates (shared pages count once for each process); only if that exceeds the
// cap are proportional sizes read, which are exact and slow. Files in the given tmpfs mounts and memfds held open are
// added; where they are mapped as well, the larger of both views counts, so that nothing counts twice.
//
// It samples: a burst between two samples is seen late, children that live and die between two samples with SIGCHLD
// ignored are not seen at all, and neither are memfds in flight inside a socket or detached System V segments. That is
// why the receipt says `cgroup-memory` is missing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "limits/usage.h"

namespace coffer::limits {

class TreeUsage {
 public:
  // `init` as seen from here. `memory_cap` is the size above which exact sizes are read. `proc` is for tests.
  TreeUsage(pid_t init, uint64_t memory_cap, std::string proc = "/proc");

  // A tmpfs of the boundary whose contents count as memory: a descriptor of any directory or file in it. Borrowed.
  void CountTmpfs(int fd) { tmpfs_.push_back(fd); }

  // One sample; peaks and CPU never shrink. An error only if init itself cannot be read (it is gone).
  Result<Usage> Measure();

  // All processes of the tree at the last Measure, init first.
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  struct Process {
    uint64_t own_ticks = 0;       // utime + stime
    uint64_t children_ticks = 0;  // cutime + cstime
    uint64_t start = 0;
    uint64_t threads = 0;
    pid_t parent = 0;
    bool dead = false;  // and not yet reaped
  };
  struct Seen {
    uint64_t start = 0;
    uint64_t ticks = 0;
    uint64_t sample = 0;
  };

  bool ReadStat(pid_t pid, Process& out) const;
  std::string PathOf(pid_t pid, std::string_view name) const;
  bool FindByChildren(std::vector<Process>& processes);
  void FindByScan(std::vector<Process>& processes);
  uint64_t MemoryNow() const;
  uint64_t FilesInMemory() const;
  uint64_t CpuTicks(const std::vector<Process>& processes);

  pid_t init_;
  uint64_t memory_cap_;
  std::string proc_;
  uint64_t page_size_;
  Nanos tick_;
  std::vector<int> tmpfs_;
  std::vector<pid_t> pids_;
  std::unordered_map<pid_t, Seen> seen_;
  uint64_t sample_ = 0;
  uint64_t seen_ticks_ = 0;
  uint64_t memfd_device_ = 0;
  bool has_children_files_ = true;
  Usage last_;
};

// Bytes to and from block devices, of `pid` and the children it has reaped: one file, also of a process that has
// exited and was not yet waited for. For hosts without an I/O cgroup. 0 if it may not be read.
uint64_t ReadIoOf(pid_t pid, const std::string& proc = "/proc");

}  // namespace coffer::limits
