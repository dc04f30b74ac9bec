// SPDX-License-Identifier: Apache-2.0
#include "isolation/boundary.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/sys.h"
#include "isolation/call_block.h"
#include "isolation/child/confine.h"
#include "isolation/child/helper.h"
#include "isolation/pack_plan.h"
#include "isolation/setup_error.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

// Root of a user namespace that has only the usual 65,536 ids.
constexpr uint32_t kFirstSmallUid = 2000;
constexpr uint32_t kLastSmallUid = 65000;

// Takes another effective uid for a moment. The capabilities come back with uid 0. The kernel forgets a process's
// parent-death signal when its uid changes, so that is set again, and obeyed if the parent has died meanwhile.
class BorrowedUid {
 public:
  BorrowedUid() = default;
  BorrowedUid(const BorrowedUid&) = delete;
  BorrowedUid& operator=(const BorrowedUid&) = delete;
  ~BorrowedUid() { GiveBack(); }

  long Take(uint32_t uid) {
    parent_ = ::getppid();
    int signal = 0;
    long answer = Syscall(SYS_prctl, PR_GET_PDEATHSIG, Arg(&signal), 0, 0, 0);
    if (answer >= 0) {
      answer = Syscall(SYS_setresuid, -1, uid, -1);
    }
    if (answer < 0) {
      return answer;
    }
    borrowed_ = true;
    death_signal_ = signal;
    // A cgroup that init is born into is root's: file accesses stay root's.
    (void)Syscall(SYS_setfsuid, 0);
    return 0;
  }

  // Straight to the kernel, past the seam for faults: uid 0 is still our real one, so none of it
  // can be refused, and there is no way on without it.
  void GiveBack() {
    if (!std::exchange(borrowed_, false)) {
      return;
    }
    if (::syscall(SYS_setresuid, -1, 0, -1) != 0 ||
        ::syscall(SYS_prctl, PR_SET_PDEATHSIG, death_signal_, 0, 0, 0) != 0) {
      ::abort();
    }
    if (death_signal_ != 0 && ::getppid() != parent_) {
      ::raise(death_signal_);
    }
  }

 private:
  bool borrowed_ = false;
  int death_signal_ = 0;
  pid_t parent_ = 0;
};

// The uid of the range that belongs to this supervisor's pid, or a small one where that is not mapped. Where neither is
// mapped, none is borrowed: the clone or Identify then fails with the returned uid and reports the reason.
uint32_t BorrowBoundaryUid(const UidRange& uids, BorrowedUid& borrowed) {
  const auto pid = static_cast<uint32_t>(::getpid());
  const uint32_t wanted = uids.first + pid % uids.count;
  const uint32_t small = kFirstSmallUid + pid;
  if (borrowed.Take(wanted) < 0 && small < kLastSmallUid && borrowed.Take(small) == 0) {
    return small;
  }
  return wanted;
}

constexpr int kSetupSeconds =
    30;  // it takes a millisecond; a machine may be busy, but not for ever

Error NotReady() {
  return HostFault("isolation.init",
                   fmt::format("the boundary was not ready within {} s", kSetupSeconds),
                   "the host is overloaded, or a file system hangs");
}

Error ToldToStop() {
  return HostFault("isolation.init", "the call was told to end before the boundary was ready");
}

}  // namespace

void Boundary::Unmap::operator()(Shared* shared) const { ::munmap(shared, sizeof(Shared)); }

Result<Boundary> Boundary::Spawn(const BoundaryPlan& plan, OwnWords own) {
  Boundary boundary;
  boundary.plan_ = &plan;
  const long map = Syscall(SYS_mmap, 0, sizeof(Shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (map < 0 && map > -4096) {
    return sys::ErrnoError("isolation.memory", "cannot map memory for a boundary", map);
  }
  boundary.shared_ = std::unique_ptr<Shared, Unmap>(reinterpret_cast<Shared*>(map));
  boundary.shared_->report.version = kReportVersion;
  boundary.shared_->report.listener_fd = -1;
  boundary.shared_->report.pty_master = -1;
  boundary.shared_->report.pty_slave = -1;
  boundary.shared_->report.network_socket = -1;
  std::fill(std::begin(boundary.shared_->report.tmpfs), std::end(boundary.shared_->report.tmpfs),
            -1);
  std::fill(std::begin(boundary.shared_->report.ports), std::end(boundary.shared_->report.ports),
            -1);
  std::fill(std::begin(boundary.shared_->report.names), std::end(boundary.shared_->report.names),
            -1);

  int ends[2] = {-1, -1};
  long answer = Syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, Arg(ends));
  if (answer < 0) {
    return sys::ErrnoError("isolation.socketpair", "cannot make the control socket", answer);
  }
  boundary.control_ = UniqueFd(ends[0]);
  UniqueFd child_end(ends[1]);

  // For init: while it shares our descriptor table, only this tells it that we are gone
  // (child/handover.cc).
  answer = Syscall(SYS_pidfd_open, ::getpid(), 0);
  if (answer < 0) {
    return sys::ErrnoError("isolation.pidfd", "cannot open a descriptor of ourselves", answer);
  }
  boundary.self_ = UniqueFd(static_cast<int>(answer));

  const std::string root = PackRoot(plan.root);
  ChildContext context;
  context.plan = &plan;
  context.root = reinterpret_cast<const PlanBlock*>(root.data());
  context.report = &boundary.shared_->report;
  context.admission = &boundary.shared_->admission;
  context.control = child_end.get();
  context.supervisor = boundary.self_.get();
  context.words = own.start;
  context.words_size = own.size;

  int pidfd = -1;
  clone_args args{};
  // The descriptor table is shared until init has installed its filter, so that the notification descriptor it gets
  // is ours as well. After that init keeps a table of its own.
  args.flags = CLONE_FILES | CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
  if (plan.level == policy::Level::kContainer) {
    args.flags |= CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS;
  }
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (plan.clone_into_cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(plan.clone_into_cgroup);
  }
  boundary.host_uid_ = ::geteuid();
  {
    BorrowedUid borrowed;
    if (plan.own_uid) {
      boundary.host_uid_ = BorrowBoundaryUid(plan.uids, borrowed);
    }
    if (plan.level != policy::Level::kContainer) {
      borrowed
          .GiveBack();  // there is no user namespace to be charged; init needs root to change its uid
    }
    boundary.spawned_ = BootTime();
    answer = Syscall(SYS_clone3, Arg(&args), sizeof(args));
    // Docker's default filter hides clone3. Without namespaces and without a cgroup to be born in,
    // clone(2) does the same: our signals are blocked here, and init drops our handlers before it
    // takes any (HeedEverySignal).
    if (answer == -ENOSYS && plan.level == policy::Level::kProcess && plan.clone_into_cgroup < 0) {
      answer = Syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD, 0, Arg(&pidfd), 0, 0);
    }
    if (answer == 0) {
      EnterBoundary(context);
    }
  }
  if (answer < 0) {
    boundary.reaped_ = true;
    return ExplainClone(answer);
  }
  boundary.pid_ = static_cast<pid_t>(answer);
  boundary.pidfd_ = UniqueFd(pidfd);
  // Closing the child's end here would close it there too: it stays until init has a table of its own.
  boundary.child_end_ = std::move(child_end);
  return boundary;
}

Boundary::~Boundary() {
  if (shared_ != nullptr && !reaped_ && pid_ > 0) {
    Kill();
    (void)Syscall(SYS_waitid, P_PIDFD, pidfd_.get(), 0, WEXITED | __WALL, 0);
  }
  if (shared_ != nullptr && !ready_) {
    // What init had put into the table that we shared.
    for (int32_t* const fd : {&shared_->report.network_socket, &shared_->report.listener_fd,
                              &shared_->report.pty_master, &shared_->report.pty_slave}) {
      UniqueFd(std::exchange(*fd, -1)).Reset();
    }
    for (int32_t& fd : shared_->report.ports) {
      UniqueFd(std::exchange(fd, -1)).Reset();
    }
    for (int32_t& fd : shared_->report.names) {
      UniqueFd(std::exchange(fd, -1)).Reset();
    }
  }
}

Status Boundary::WriteMaps(uint32_t host_gid) {
  const std::string proc = fmt::format("/proc/{}/", pid_);
  TRY(sys::WriteFile(proc + "uid_map", fmt::format("{} {} 1", plan_->uid, host_uid_)));
  return sys::WriteFile(proc + "gid_map", fmt::format("{} {} 1", plan_->uid, host_gid));
}

Status Boundary::Identify() {
  BoundaryAdmission& admission = shared_->admission;
  admission.groups_allowed = plan_->own_uid ? 1 : 0;
  if (plan_->level != policy::Level::kContainer) {
    admission.host_uid = plan_->own_uid ? host_uid_ : 0;
    return Tell('I');
  }
  Status wrote;
  if (plan_->own_uid) {
    wrote = WriteMaps(host_uid_);
  } else {
    // Without CAP_SETGID the kernel takes a gid map only after this (user_namespaces(7)).
    wrote = sys::WriteFile(fmt::format("/proc/{}/setgroups", pid_), "deny");
    if (wrote.ok()) {
      wrote = WriteMaps(::getegid());
    }
  }
  if (!wrote.ok()) {
    Error error = std::move(wrote.error());
    error.code = "isolation.userns.map";
    if (error.sys_errno == ENOENT) {
      error.hint = "mount /proc: coffer needs it to map the boundary's user";
    } else if (error.sys_errno == EPERM) {
      error.hint =
          "this user namespace has no uid to spare for a boundary; run coffer as an ordinary user "
          "instead";
    }
    return error;
  }
  return Tell('I');
}

Status Boundary::Tell(char word) {
  const long sent = Syscall(SYS_sendto, control_.get(), Arg(&word), 1, MSG_NOSIGNAL, 0, 0);
  if (sent != 1) {
    return sys::ErrnoError("isolation.control", "cannot reach the boundary's init", sent);
  }
  return {};
}

Status Boundary::Complete(const PayloadStdio& stdio, std::span<const int> trees, const Call& call) {
  BoundaryAdmission& admission = shared_->admission;
  if (trees.size() > std::size(admission.trees)) {
    return Internal("isolation.trees", "too many mounts");
  }
  std::copy(std::begin(stdio.fd), std::end(stdio.fd), admission.stdio);
  std::copy(trees.begin(), trees.end(), admission.trees);
  TRY_ASSIGN(const std::string block, PackCallPlan(*plan_, call));
  TRY_ASSIGN(plan_block_, SealInMemory(block));
  admission.plan_block = plan_block_.get();
  admission.plan_size = block.size();
  return Tell('P');
}

Status Boundary::EndFiles(std::vector<PrivateFile> ends) {
  RootPart part;
  part.files = std::move(ends);
  const std::string block = PackRoot(part);
  TRY_ASSIGN(ends_block_, SealInMemory(block));
  shared_->admission.ends_block = ends_block_.get();
  shared_->admission.ends_size = block.size();
  return {};
}

Status Boundary::Admit(std::span<const int> tasks, std::span<const Rlimit> rlimits) {
  BoundaryAdmission& admission = shared_->admission;
  if (tasks.size() > std::size(admission.tasks) || rlimits.size() > std::size(admission.rlimits)) {
    return Internal("isolation.cgroups", "too many cgroup hierarchies or limits");
  }
  std::copy(tasks.begin(), tasks.end(), admission.tasks);
  admission.tasks_count = static_cast<uint32_t>(tasks.size());
  for (size_t i = 0; i < rlimits.size(); ++i) {
    admission.rlimits[i] = {rlimits[i].resource, rlimits[i].soft, rlimits[i].hard};
  }
  admission.rlimit_count = static_cast<uint32_t>(rlimits.size());
  TRY(Tell('A'));
  return plan_->level == policy::Level::kContainer ? RaiseNetwork() : Status();
}

// Beside init, which has most of its way still before it. Nothing runs before we say so, and that is after this.
Status Boundary::RaiseNetwork() {
  ChildReport& report = shared_->report;
  pollfd waits[2] = {{pidfd_.get(), POLLIN, 0}, {stop_fd_, POLLIN, 0}};
  const timespec now{};
  const Nanos until = BootTime() + std::chrono::seconds(kSetupSeconds);
  while (!NetworkMade(report)) {
    if (BootTime() > until) {
      return NotReady();
    }
    if (Syscall(SYS_ppoll, Arg(waits), 2, Arg(&now), 0, 0) > 0) {
      // If it gave up, AwaitReady says why.
      return waits[0].revents != 0 ? Status() : Status(ToldToStop());
    }
  }
  if (report.network < 0) {
    return {};
  }
  const UniqueFd socket(std::exchange(report.network_socket, -1));
  if (const long answer = RaiseLoopback(socket.get()); answer < 0) {
    return sys::ErrnoError("isolation.loopback", "cannot raise the boundary's loopback device",
                           answer);
  }
  for (int32_t& fd : report.ports) {
    if (fd >= 0) {
      port_sockets_.emplace_back(std::exchange(fd, -1));
    }
  }
  for (uint32_t i = 0; i < kNameSockets; ++i) {
    name_sockets_[i].Reset(report.names[i] < 0 ? -1 : std::exchange(report.names[i], -1));
  }
  return {};
}

Status Boundary::AwaitReady() {
  pollfd waits[3] = {{control_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}, {stop_fd_, POLLIN, 0}};
  for (;;) {
    const timespec patience{kSetupSeconds, 0};
    const long answer = Syscall(SYS_ppoll, Arg(waits), 3, Arg(&patience), 0, 0);
    if (answer == -EINTR) {
      continue;
    }
    if (answer == 0) {
      return NotReady();
    }
    if (answer < 0) {
      return sys::ErrnoError("isolation.control", "cannot wait for the boundary's init", answer);
    }
    char word = 0;
    if ((waits[0].revents & POLLIN) != 0 &&
        Syscall(SYS_recvfrom, control_.get(), Arg(&word), 1, MSG_DONTWAIT, 0, 0) == 1 &&
        word == 'R') {
      ready_ = true;
      child_end_.Reset();
      UniqueFd(std::exchange(shared_->report.pty_slave, -1)).Reset();
      for (const int32_t fd : shared_->report.tmpfs) {
        if (fd >= 0) {
          tmpfs_.emplace_back(fd);
        }
      }
      return {};
    }
    const bool ended = waits[0].revents != 0 || waits[1].revents != 0;
    return ended ? Status(ExplainSetup(shared_->report, *plan_)) : Status(ToldToStop());
  }
}

Status Boundary::Start() {
  TRY(Tell('S'));
  // While the command starts: free the parts kept for init while it shared our descriptor table.
  self_.Reset();
  plan_block_.Reset();
  ends_block_.Reset();
  return {};
}

// In a container init is pid 1 of its namespace, and the kernel ends all of it with init
// (pid_namespaces(7)). At the process level the supervisor ends what is left (process_tree.h).
void Boundary::Kill() { (void)Syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, 0, 0); }

void Boundary::Forward(int signal) {
  (void)Syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, 0, 0);
}

UniqueFd Boundary::TakePty() { return UniqueFd(std::exchange(shared_->report.pty_master, -1)); }

UniqueFd Boundary::TakePortSocket() {
  UniqueFd taken;
  if (!port_sockets_.empty()) {
    taken = std::move(port_sockets_.back());
    port_sockets_.pop_back();
  }
  return taken;
}

std::vector<UniqueFd> Boundary::TakePortSockets() { return std::move(port_sockets_); }

UniqueFd Boundary::TakeNameSocket(NameSocket which) {
  return std::move(name_sockets_[static_cast<size_t>(which)]);
}

UniqueFd Boundary::TakeListener() {
  return UniqueFd(std::exchange(shared_->report.listener_fd, -1));
}

bool Boundary::exec_happened() const {
  return shared_->report.stage.load(std::memory_order_acquire) >=
         static_cast<uint32_t>(Stage::kRunning);
}

Result<PayloadEnd> Boundary::Reap() {
  siginfo_t info{};
  long answer = 0;
  do {
    answer = Syscall(SYS_waitid, P_PIDFD, pidfd_.get(), Arg(&info), WEXITED | __WALL);
  } while (answer == -EINTR);
  if (answer < 0) {
    return sys::ErrnoError("isolation.wait", "cannot wait for the boundary's init", answer);
  }
  reaped_ = true;
  const ChildReport& report = shared_->report;
  PayloadEnd end;
  end.exec_error = report.exec_error;
  end.ran = exec_happened() && report.exec_error == 0;
  if (report.ended == 1 && end.ran) {
    const int status = report.wait_status;
    if (WIFEXITED(status)) {
      end.exit_code = WEXITSTATUS(status);
    } else if (WIFSIGNALED(status)) {
      end.signal = WTERMSIG(status);
    } else {
      return Internal("isolation.report", "the boundary's report makes no sense");
    }
    return end;
  }
  if (end.exec_error != 0) {
    return end;
  }
  if (info.si_code == CLD_EXITED) {
    return ExplainSetup(shared_->report, *plan_);  // init gave up
  }
  end.signal = SIGKILL;  // init was killed, and everything with it
  return end;
}

std::vector<std::pair<std::string, int64_t>> Boundary::StepTimes() const {
  std::vector<std::pair<std::string, int64_t>> steps;
  for (uint32_t i = 0; i < kStageCount; ++i) {
    const int64_t entered = shared_->report.entered_ns[i];
    if (entered > 0) {
      steps.emplace_back(StageName(static_cast<Stage>(i)), (entered - spawned_.count()) / 1000);
    }
  }
  return steps;
}

}  // namespace coffer::isolation
