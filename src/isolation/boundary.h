// SPDX-License-Identifier: Apache-2.0
//
// A Boundary is one live confinement: prepared from a plan, given one call, run once, destroyed.
//
//   Spawn       clones init; it starts on the network namespace, which takes longest
//   Identify    gives it its user: it begins its private root
//   Complete    hands over stdio, mounts, the plan's second half and the call: it makes its root and enters it
//   EndFiles    only if private files have ends that come late: hands them over
//   Admit       hands over cgroups: it ends its root, joins them and gives up every power; meanwhile
//               we raise its loopback, and then have the sockets of its network
//   AwaitReady  it is confined and waits; layers can be probed now
//   Start       it runs
//   Kill, Reap  nothing of it is left
//
// The order is the same for root and for users, on cgroup v1 and v2. The steps are separate because boundaries can be
// prepared ahead of their calls; none can be skipped, and none repeated. If this process dies, init dies with it
// (PR_SET_PDEATHSIG, and the control socket before that), and the kernel kills the rest of the pid namespace. At the
// process level there is no pid namespace: see process_tree.h.
#pragma once

#include <sys/types.h>

#include <array>
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
#include "isolation/child/report.h"
#include "isolation/plan.h"

namespace coffer::isolation {

// The ends of stdio that the payload gets. None may be below 3.
struct PayloadStdio {
  int fd[3] = {-1, -1, -1};
};

// Our own command line and environment in memory, wiped in the child so that /proc/1 does not show them.
struct OwnWords {
  char* start = nullptr;
  size_t size = 0;
};

// How the payload ended. `ran` is false if execve never happened; then `exec_error` says why.
struct PayloadEnd {
  bool ran = false;
  int exec_error = 0;
  int exit_code = -1;  // if it exited
  int signal = 0;      // if a signal ended it
};

class Boundary {
 public:
  // Needs the plan's first half only; the second is read by Complete. As root the user namespace is
  // made by the boundary's own uid, so that the kernel charges that uid, not root, for whatever it
  // counts per user.
  static Result<Boundary> Spawn(const BoundaryPlan& plan, OwnWords own);

  Boundary(Boundary&&) noexcept = default;
  Boundary& operator=(Boundary&&) = delete;
  ~Boundary();  // kills and reaps what is still there

  // While `fd` can be read, waiting for init fails at once. The caller owns it; -1: none.
  void StopWaitingWhen(int fd) { stop_fd_ = fd; }
  // Gives the boundary its user: maps written, host_uid() final.
  Status Identify();
  // The plan is complete. `trees` are the detached mounts of its supervised binds, by the index of the bind.
  Status Complete(const PayloadStdio& stdio, std::span<const int> trees, const Call& call);
  // After Complete: the ends of private files of the plan, which were not known before. Once.
  Status EndFiles(std::vector<PrivateFile> ends);
  // `tasks`: descriptors of the v1 `tasks` files to join. On v2 init was born in its cgroup.
  Status Admit(std::span<const int> tasks, std::span<const Rlimit> rlimits);
  // The host uid that the boundary has.
  uint32_t host_uid() const { return host_uid_; }
  // True at the container level: then everything inside dies with init.
  bool has_pid_namespace() const { return plan_->level == policy::Level::kContainer; }
  Status AwaitReady();
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
  const BoundaryPlan& plan() const { return *plan_; }
  // The seccomp notification descriptor, once ready; given away once.
  UniqueFd TakeListener();
  // The TCP sockets of its network that the plan asked for, once admitted: one, or all that are
  // left. Each is given away once. There is none if init gave up; AwaitReady says why.
  UniqueFd TakePortSocket();
  std::vector<UniqueFd> TakePortSockets();
  // One of the sockets that lead names to the supervisor, likewise; not valid if the kernel has no such socket.
  UniqueFd TakeNameSocket(NameSocket which);
  // The master of the boundary's terminal, once ready; invalid without a terminal. Given away once.
  UniqueFd TakePty();
  int pty() const { return shared_->report.pty_master; }
  bool proc_mounted() const { return shared_->report.proc_mounted == 1; }
  bool landlock_held() const { return shared_->report.landlock_held == 1; }
  bool exec_happened() const;
  bool counters_bounded() const { return shared_->report.counters_bounded == 1; }
  bool denials_recorded() const { return shared_->report.denials_unrecorded == 0; }

  // Microseconds from Spawn to the entry of each stage that was reached, by name.
  std::vector<std::pair<std::string, int64_t>> StepTimes() const;

 private:
  struct Shared {
    ChildReport report;
    BoundaryAdmission admission;
  };
  struct Unmap {
    void operator()(Shared* shared) const;
  };

  Boundary() = default;
  Status WriteMaps(uint32_t host_gid);
  Status Tell(char word);
  Status RaiseNetwork();

  std::unique_ptr<Shared, Unmap> shared_;
  UniqueFd plan_block_;  // until init has a table of its own
  UniqueFd ends_block_;  // the same
  UniqueFd pidfd_;
  UniqueFd control_;
  UniqueFd child_end_;
  UniqueFd self_;
  std::vector<UniqueFd> tmpfs_;
  std::vector<UniqueFd> port_sockets_;
  std::array<UniqueFd, kNameSockets> name_sockets_;
  pid_t pid_ = -1;
  uint32_t host_uid_ = 0;
  int stop_fd_ = -1;
  Nanos spawned_{0};
  const BoundaryPlan* plan_ = nullptr;  // outlives the boundary
  bool ready_ = false;
  bool reaped_ = false;
};

}  // namespace coffer::isolation
