// SPDX-License-Identifier: Apache-2.0
//
// A Cgroup is the set of kernel control groups of one boundary: it caps memory and processes, adds up CPU time and
// I/O, and can kill everything inside, whatever its session, parent or state.
//
// How a process gets in decides the latency of a call: writing a pid to cgroup.procs takes milliseconds on an idle
// host, because it waits for a grace period. So nothing here writes cgroup.procs. On v2 the child is born inside
// (clone3 with CLONE_INTO_CGROUP on clone_into_fd()); on v1 the single-threaded child writes "0" to each of
// tasks_fds(), before it starts anything. The descriptors carry our credentials, so the child needs none.
//
// The memory cap counts anonymous memory, page cache, kernel memory and everything in tmpfs and memfd; swap does not
// extend it. v2 kills the whole cgroup when the cap is reached (memory.oom.group); v1 kills one process, and the
// supervisor must Kill() the rest when oom_event_fd() fires or OomHappened() says so.
//
// The cgroup of a call of the daemon lies in the level of its tenant, and that in the level of all calls of the daemon (tenant_level.h), where the host
// has a place for levels.
//
// The destructor kills and removes, best effort. What a SIGKILLed supervisor leaves is removed by sweep.h.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "limits/cgroup/host.h"
#include "limits/cgroup/tenant_level.h"
#include "limits/usage.h"
#include "policy/envelope.h"
#include "policy/layer.h"

namespace coffer::limits {

// What to create beyond memory, pids and CPU accounting. Each is one more directory on v1, about 15 us.
struct CgroupWants {
  bool io = false;  // count block I/O (v1: blkio; v2: the io controller)
  bool freezer =
      false;  // v1 only: freeze before killing. Not needed where pids is usable (see Kill)
  bool sockets = true;  // v1 only: cap the buffers of TCP and UDP too, at a quarter of the memory
  std::string level;    // the name of its tenant's level; empty: it has none
  std::string calls_level;  // around it, that of all calls of its daemon; only with `level`
};

class Cgroup {
 public:
  // Makes the directories and writes the caps. Controllers that the host lacks are left out: compare layers() with
  // the floor. A controller that exists and cannot be limited is an error, and nothing is left behind.
  static Result<Cgroup> Create(const CgroupHost& host, const policy::Limits& caps,
                               const CgroupWants& wants);

  Cgroup() =
      default;  // no cgroup at all: layers() is empty, everything else succeeds and does nothing
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup();

  // v2: directory descriptor for clone_args.cgroup; -1 if there is no v2 part.
  int clone_into_fd() const { return v2_.get(); }
  // v1: descriptors of the `tasks` files, to which the child writes "0". Close-on-exec.
  std::span<const int> tasks_fds() const { return {tasks_.data(), tasks_count_}; }
  // Closes tasks_fds() in this process, once the child has joined.
  void CloseTasks();

  policy::LayerSet layers() const { return layers_; }
  const std::string& name() const { return name_; }  // see name.h
  // True if a directory of it lies in the level of its tenant, not beside it.
  bool LiesInLevel() const;

  // Everything but `memory` and `pids`, which only kLive reads: after the end they are of no interest.
  enum class Detail : uint8_t { kFinal, kLive };
  Result<Usage> ReadUsage(Detail detail = Detail::kFinal) const;
  // What could not be reclaimed now, without caches: to be added to what no cgroup counts. 0 if
  // there is no memory cgroup.
  uint64_t ReadHeldMemory() const;
  // Only the process cap: how many there were, and how many were refused. One file, unless the cap was reached.
  void ReadPids(Usage& usage) const;
  // Only the CPU time: one file, for the periodic check.
  Result<Nanos> ReadCpu() const;

  // Becomes readable (POLLIN) when the memory cap may have led to a kill; then ask OomHappened(). -1 if there is no
  // memory cgroup. Made on first use, because a short call never needs it: check OomHappened() when init died, and
  // ask for this descriptor at the first periodic check. Costs about 10 us.
  int oom_event_fd();
  // Empties the event and says whether the kernel killed something for its memory.
  bool OomHappened();

  // Kills everything inside and returns when nothing is left alive, or an error after two seconds (a process in an
  // uninterruptible call). v2: cgroup.kill. v1: no new process may start (pids.max 0, or frozen), then SIGKILL to each.
  Status Kill();

  // Removes the directories, waiting up to two seconds for dying processes. On error the rest stays owned and may be
  // tried again.
  Status Remove();

 private:
  static constexpr size_t kMaxV1 = 5;              // memory, pids, cpuacct, blkio, freezer
  static constexpr size_t kMaxTasks = kMaxV1 + 1;  // and the level
  struct V1Dir {
    std::string path;
    uint32_t controllers = 0;  // bit set of Controller
  };

  const V1Dir* FindV1(Controller controller) const;
  Status AddV1(const CgroupHost& host, Controller controller);
  Status CreateV1(const CgroupHost& host, const CgroupWants& wants);
  Status CreateV2(const CgroupHost& host, const CgroupWants& wants);
  Status OpenTasks(std::string dir);
  void Destroy();

  // Left after what is below them is gone: the tenant's, and then that of all calls.
  TenantLevel calls_level_, level_;
  std::string name_;
  policy::LayerSet layers_;
  uint64_t memory_cap_ = 0;
  uint64_t pids_cap_ = 0;
  std::array<V1Dir, kMaxV1> v1_;
  std::array<int, kMaxTasks> tasks_{-1, -1, -1, -1,
                                    -1, -1};  // owned; plain ints, because the child wants an array
  size_t v1_count_ = 0;
  size_t tasks_count_ = 0;
  std::string v2_path_;
  uint32_t v2_controllers_ = 0;
  UniqueFd v2_;
  UniqueFd oom_event_;
  UniqueFd oom_source_;  // v1: memory.oom_control, must stay open while the event is registered
};

}  // namespace coffer::limits
