// SPDX-License-Identifier: Apache-2.0
//
// A Boundary is one live confinement: prepared from a plan, given one call, run once, destroyed.
//
//   Spawn       clones init; it starts on what nobody has to decide (the network namespace)
//   Identify    gives it its user, and the first half of the plan: it begins its root
//   Complete    the plan is complete: it ends its root and enters it
//   Admit       there are cgroups: it joins them and gives up every power; meanwhile we raise its loopback
//   AwaitReady  it is confined and waits; layers can be probed now
//   Give        the call: program, arguments, environment, working directory
//   Start       it runs
//   Kill, Reap  nothing of it is left
//
// The steps are separate because boundaries can be prepared ahead of their calls; none can be skipped, and none
// repeated. If this process dies, init dies with it (PR_SET_PDEATHSIG, and the control socket before that), and the
// kernel kills the rest of the pid namespace. At the process level there is no pid namespace: see process_tree.h.
//
// A plan with `shares_memory` clones init with our memory instead of a copy of it: that saves a tenth of the call, and
// the plan may be written while init already works, each half before it is told of it. What it costs: whoever takes over init has our
// memory. Init runs nothing but child/, is confined like the payload and, not being dumpable, cannot be seen, traced or
// written to from inside. It must not be in the payload's memory cgroup (see Admission).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "isolation/call_block.h"
#include "isolation/child/enter.h"
#include "isolation/placement.h"
#include "isolation/plan.h"

namespace coffer::isolation {

// The ends of stdio that the payload gets. None may be below 3.
struct PayloadStdio {
  int fd[3] = {-1, -1, -1};
};

// Our own command line and environment in memory, wiped in the child so that /proc/1 does not show them; and where our
// heap starts, which init gives back.
struct OwnMemory {
  char* words = nullptr;
  size_t size = 0;
  char* heap = nullptr;
};

// How the payload ended. `ran` is false if execve never happened; then `exec_error` says why.
struct PayloadEnd {
  bool ran = false;
  int exec_error = 0;
  int exit_code = -1;  // if it exited
  int signal = 0;      // if a signal ended it
};

// The v1 cgroups to enter: descriptors of `tasks` files. On v2 init was born in its cgroup.
struct CgroupEntry {
  std::span<const int> tasks;  // init writes "0" to each
  int memory = -1;             // one of them, if the payload shall join it by itself ...
  int outside = -1;            // ... because init leaves it for this one
};

class Boundary {
 public:
  // `call_bytes` is the room kept for the call's strings.
  static Result<Boundary> Spawn(const BoundaryPlan& plan, size_t call_bytes, OwnMemory own);

  Boundary(Boundary&&) noexcept = default;
  Boundary& operator=(Boundary&&) = delete;
  ~Boundary();  // kills and reaps what is still there

  // Gives the boundary its user: maps written, host_uid() final.
  Status Identify();
  // `trees` are the detached mounts of the plan's supervised binds, by the index of the bind.
  Status Complete(const PayloadStdio& stdio, std::span<const int> trees);
  // Before Complete, where there is work left to do between that and Admit: init wakes beside us (placement.h).
  void SendAway();
  Status Admit(const CgroupEntry& cgroups, std::span<const Rlimit> rlimits);
  // The room there is for the call's strings.
  size_t call_room() const;
  // The host uid the boundary has; final after Identify.
  uint32_t host_uid() const { return host_uid_; }
  // True at the container level: then everything inside dies with init.
  bool has_pid_namespace() const { return plan_->level == policy::Level::kContainer; }
  Status AwaitReady();
  Status Give(const Call& call);
  Status Start();

  // SIGKILL to init, and so to the whole pid namespace.
  void Kill();
  // Forwards a signal to the payload's process group.
  void Forward(int signal);
  // Waits for init to be gone; by then everything in its pid namespace is. Fails if the report makes no sense.
  Result<PayloadEnd> Reap();

  // The boundary's private writable places, once ready: descriptors for statfs.
  const std::vector<UniqueFd>& tmpfs() const { return tmpfs_; }
  int pidfd() const { return pidfd_.get(); }  // readable when init has ended
  pid_t init_pid() const { return pid_; }
  int control_fd() const { return control_.get(); }
  const BoundaryPlan& plan() const { return *plan_; }
  // The seccomp notification descriptor, once ready; given away once.
  UniqueFd TakeListener();
  // The master of the boundary's terminal, once ready; invalid without a terminal. Given away once.
  UniqueFd TakePty();
  int pty() const { return shared_->report.pty_master; }
  bool proc_mounted() const { return shared_->report.proc_mounted == 1; }
  bool landlock_held() const { return shared_->report.landlock_held == 1; }
  bool exec_happened() const;
  bool denials_recorded() const { return shared_->report.denials_unrecorded == 0; }

  // Microseconds from Spawn to the entry of each stage that was reached, by name.
  std::vector<std::pair<std::string, int64_t>> StepTimes() const;

 private:
  struct Shared {
    ChildReport report;
    Admission admission;
    ChildContext context;
  };
  struct Unmap {
    size_t size;
    void operator()(Shared* shared) const;
  };

  Boundary() = default;
  Status WriteMaps(uint32_t host_uid, uint32_t host_gid);
  Status Tell(char word);
  Status RaiseNetwork();
  CallBlock* call_block() const;

  std::unique_ptr<Shared, Unmap> shared_{nullptr, Unmap{0}};
  size_t call_capacity_ = 0;
  UniqueFd pidfd_;
  UniqueFd control_;
  UniqueFd child_end_;
  UniqueFd self_;
  std::vector<UniqueFd> tmpfs_;
  Placement placement_;
  pid_t pid_ = -1;
  uint32_t host_uid_ = 0;
  Nanos spawned_{0};
  const BoundaryPlan* plan_ = nullptr;  // outlives the boundary
  bool ready_ = false;
  bool reaped_ = false;
};

}  // namespace coffer::isolation
