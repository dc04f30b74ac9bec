// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/sys.h"
#include "isolation/child/clock.h"
#include "isolation/child/confine.h"
#include "isolation/child/helper.h"
#include "isolation/child/init.h"
#include "isolation/child/proc.h"
#include "isolation/child/root.h"
#include "isolation/seccomp/install.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

// Carries the ladder: each rung is entered in the report first, so that a failure names itself.
class Ladder {
 public:
  explicit Ladder(const ChildContext& context) : context_(context) {}

  uint32_t* item() { return &context_.report->item; }

  void Enter(Stage stage) {
    context_.report->entered_ns[static_cast<uint32_t>(stage)] = BootTime().count();
    context_.report->stage.store(static_cast<uint32_t>(stage), std::memory_order_release);
  }

  // Goes on, or writes the errno and ends the child. There is no third way.
  long Must(long answer) {
    if (answer < 0) {
      context_.report->error = static_cast<int32_t>(-answer);
      ::_exit(1);
    }
    return answer;
  }

  long Must(Stage stage, long (*step)()) {
    Enter(stage);
    return Must(step());
  }

 private:
  const ChildContext& context_;
};

// While the descriptor table is shared, our copy of the supervisor's end keeps the control socket open, so its death does
// not show there: its pidfd tells.
long AwaitWord(char expected, int control, int supervisor) {
  pollfd waits[2] = {{control, POLLIN, 0}, {supervisor, POLLIN, 0}};
  char word = 0;
  for (;;) {
    const long got = Syscall(SYS_recvfrom, control, Arg(&word), 1, MSG_DONTWAIT, 0, 0);
    if (got != -EAGAIN && got != -EINTR) {
      return got < 0 ? got : (got == 1 && word == expected ? 0 : -EPIPE);
    }
    const long ready = Syscall(SYS_ppoll, Arg(waits), 2, 0, 0, 0);
    if (ready < 0 && ready != -EINTR) {
      return ready;
    }
    if (ready > 0 && waits[1].revents != 0) {
      return -EPIPE;
    }
  }
}

// A single-threaded process that writes "0" to its own `tasks` file does not take the slow lock (ADR 3).
long JoinCgroups(const Admission& admission, uint32_t* item) {
  for (uint32_t i = 0; i < admission.tasks_count && i < 8; ++i) {
    *item = i;
    const long answer = Syscall(SYS_write, admission.tasks[i], Arg("0"), 1);
    if (answer < 0) {
      return answer;
    }
  }
  return 0;
}

long SetHostname(const std::string& name) {
  return Syscall(SYS_sethostname, Arg(name.c_str()), static_cast<long>(name.size()));
}

// 1 if the canary cannot be opened, 0 if it can: then Landlock is not there, whatever the calls said.
long ProbeLandlock(const std::string& canary) {
  const long fd = Syscall(SYS_openat, AT_FDCWD, Arg(canary.c_str()), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    ::close(static_cast<int>(fd));
    return 0;
  }
  return fd == -EACCES ? 1 : 0;
}

// Ends the sharing of the supervisor's descriptor table and keeps 0, 1, 2, the control socket and `extra`, unless that is
// -1. The supervisor guarantees that none of them is below 3.
long KeepOnlyInitFds(const ChildContext& context, const int32_t (&stdio)[3], long extra) {
  // CLOSE_RANGE_UNSHARE (5.9) on an empty range copies the table; unshare(2) is refused by the filter already.
  long answer = Syscall(SYS_close_range, ~0U, ~0U, 2 /* CLOSE_RANGE_UNSHARE */);
  for (int i = 0; i < 3 && answer >= 0; ++i) {
    answer = Syscall(SYS_dup3, stdio[i], i, 0);
  }
  // One of the two may be where the other has to go: a free place first.
  long spare = -1;
  if (answer >= 0 && extra >= 0) {
    spare = answer = Syscall(SYS_fcntl, extra, F_DUPFD_CLOEXEC, kExtraFd + 1);
  }
  if (answer >= 0 && context.control != kControlFd) {
    answer = Syscall(SYS_dup3, context.control, kControlFd, O_CLOEXEC);
  }
  if (answer >= 0 && spare >= 0) {
    answer = Syscall(SYS_dup3, spare, kExtraFd, O_CLOEXEC);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_close_range, spare >= 0 ? kExtraFd + 1 : kControlFd + 1, ~0U, 0);
  }
  return answer < 0 ? answer : 0;
}

// The half of the private root that the envelope alone decides. Its descriptor.
int BeginPrivateRoot(const ChildContext& context, Ladder& ladder, bool clock) {
  const BoundaryPlan& plan = *context.plan;
  ladder.Enter(Stage::kRootMount);
  const int root = static_cast<int>(ladder.Must(MountRoot()));
  ladder.Enter(Stage::kPopulate);
  ladder.Must(Populate(plan.root, root, &context.report->tmpfs, ladder.item()));
  ladder.Enter(Stage::kDevices);
  int32_t trees[kMaxTrees];
  ladder.Must(OpenSources(plan.root, nullptr, trees, ladder.item()));
  ladder.Must(AttachBinds(plan.root, trees, root, ladder.item()));
  ladder.Enter(Stage::kProc);
  if (plan.want_proc) {
    context.report->proc_mounted =
        static_cast<uint32_t>(ladder.Must(MountProc(plan.proc, root, clock, ladder.item())));
  }
  ladder.Must(MountPts());
  return root;
}

// The old root is left for good, with the sources of all mounts in hand; then what the command needs is put in place.
void EnterPrivateRoot(const ChildContext& context, Ladder& ladder, int root) {
  const RootPart& part = context.plan->call_root;
  int32_t trees[kMaxTrees];
  ladder.Enter(Stage::kSources);
  ladder.Must(OpenSources(part, context.admission->trees, trees, ladder.item()));
  ladder.Enter(Stage::kPivot);
  ladder.Must(PivotInto(root));
  ladder.Enter(Stage::kPopulateCall);
  ladder.Must(Populate(part, root, nullptr, ladder.item()));
  ladder.Enter(Stage::kAttach);
  ladder.Must(AttachBinds(part, trees, root, ladder.item()));
  ladder.Must(SealRoot(root));
  ::close(root);  // in the supervisor's table too: nothing outside may hold this mount
}

// A terminal on the boundary's own devpts. The master lands in the descriptor table that the supervisor still shares.
long OpenPty(ChildReport* report) {
  const long master =
      Syscall(SYS_openat, AT_FDCWD, Arg("/dev/pts/ptmx"), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) {
    return master;
  }
  report->pty_master = static_cast<int32_t>(master);
  int unlock = 0;
  long answer = Syscall(SYS_ioctl, master, TIOCSPTLCK, Arg(&unlock));
  if (answer >= 0) {
    answer = Syscall(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    report->pty_slave = static_cast<int32_t>(answer);
  }
  return answer;
}

}  // namespace

void EnterBoundary(const ChildContext& context) {
  const BoundaryPlan& plan = *context.plan;
  const Admission& admission = *context.admission;
  const bool container = plan.level == policy::Level::kContainer;
  Ladder ladder(context);
  ladder.Enter(Stage::kStart);
  if (context.words != nullptr) {
    memset(context.words, 0, context.words_size);
  }

  // Set again after the change of identity, which clears it; between the two the supervisor's pidfd tells.
  ladder.Must(Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));

  // First half: beside the supervisor's own work.
  Helper helper;
  if (container) {
    ladder.Enter(Stage::kNetwork);
    helper.report = context.report;
    helper.port_sockets = plan.port_sockets;
    ladder.Must(StartHelper(&helper));
    ladder.Must(Syscall(SYS_unshare, CLONE_NEWIPC));
  }
  HeedEverySignal();
  ladder.Enter(Stage::kAwaitIdentity);
  ladder.Must(AwaitWord('I', context.control, context.supervisor));
  ladder.Enter(Stage::kIdentity);
  if (container || admission.host_uid != 0) {
    ladder.Must(
        EnforceIdentity(container ? plan.uid : admission.host_uid, admission.groups_allowed != 0));
  }
  ladder.Enter(Stage::kCounters);
  if (container) {
    context.report->counters_bounded = EnforceCounters() ? 1 : 0;
  }
  const bool clock = container && MakeClock(plan.clock_offsets);
  const int root = container ? BeginPrivateRoot(context, ladder, clock) : -1;

  // Second half: what the command needs.
  ladder.Enter(Stage::kAwaitPlan);
  ladder.Must(AwaitWord('P', context.control, context.supervisor));
  int32_t stdio[3];
  std::copy(std::begin(admission.stdio), std::end(admission.stdio), stdio);
  if (container) {
    EnterPrivateRoot(context, ladder, root);
    ladder.Enter(Stage::kPty);
    if (plan.tty) {
      const auto terminal = static_cast<int32_t>(ladder.Must(OpenPty(context.report)));
      std::fill(std::begin(stdio), std::end(stdio), terminal);
    }
    ladder.Enter(Stage::kHostname);
    ladder.Must(SetHostname(plan.hostname));
  }
  ladder.Must(Stage::kKeyring, DetachKeyring);
  ladder.Enter(Stage::kSession);
  // A process group of its own, so that the terminal's Ctrl-C reaches init through the supervisor only. The payload gets
  // a session of its own; a second one for init would cost an autogroup.
  ladder.Must(Syscall(SYS_setpgid, 0, 0));
  InitDuty duty;
  long extra = -1;
  if (!container) {
    // Without a pid namespace, what loses its parent comes to init, and is found there.
    ladder.Must(Syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    duty.ending = InitEnding::kKillReach;
    if (!plan.scoped_kill) {
      // Now, because Landlock will not let us later.
      extra = ladder.Must(
          Syscall(SYS_openat, AT_FDCWD, Arg("/proc/thread-self/children"), O_RDONLY | O_CLOEXEC));
      duty.ending = InitEnding::kKillChildren;
    }
  }
  const bool powerful = container || admission.host_uid != 0;
  ladder.Enter(Stage::kBoundingSet);
  if (powerful) {
    ladder.Must(EnforceNoGain());
  }
  // Outside a container the rules are made without power over the host's files, further down.
  int ruleset = -1;
  ladder.Enter(Stage::kLandlockRules);
  if (container && plan.landlock_abi > 0) {
    ruleset = static_cast<int>(
        ladder.Must(MakeLandlockRules(plan.landlock_abi, plan.landlock, true, ladder.item())));
  }

  // The end: its cgroups, its network, and then no power any more.
  ladder.Enter(Stage::kDetach);
  if (container) {
    ladder.Must(DetachOldRoot());
  }
  ladder.Enter(Stage::kAwaitAdmission);
  ladder.Must(AwaitWord('A', context.control, context.supervisor));
  ladder.Enter(Stage::kJoinCgroup);
  ladder.Must(JoinCgroups(admission, ladder.item()));
  if (container) {
    ladder.Enter(Stage::kCgroupNamespace);
    ladder.Must(Syscall(SYS_unshare, CLONE_NEWCGROUP));
    MountCgroup(plan.cgroup_type);
    ladder.Enter(Stage::kLoopback);
    ladder.Must(EnterNetwork(helper));
  }
  ladder.Enter(Stage::kCapabilities);
  if (powerful) {
    ladder.Must(EnforceNoCapabilities());
  }
  ladder.Must(Stage::kNoNewPrivs, EnforceNoNewPrivs);
  ladder.Must(EnforceInitPosture());
  ladder.Enter(Stage::kLandlock);
  if (ruleset >= 0) {
    ladder.Must(EnterLandlock(ruleset));
  } else if (plan.landlock_abi > 0) {
    ladder.Must(EnforceLandlock(plan.landlock_abi, plan.landlock, ladder.item()));
  }
  ladder.Enter(Stage::kSeccomp);
  long listener = InstallFilter(plan.filter);
  if (listener == -EBUSY) {
    // Another sandbox around us has a listener already: refusals stay refusals, but no record of them reaches us.
    ladder.Must(InstallFilterUnrecorded(
        plan.unserved_filter.empty() ? plan.filter : std::span(plan.unserved_filter)));
    listener = -1;
    context.report->denials_unrecorded = 1;
  } else {
    ladder.Must(listener);
  }
  context.report->listener_fd = static_cast<int32_t>(listener);
  ladder.Enter(Stage::kLandlockProbe);
  if (plan.landlock_abi > 0) {
    context.report->landlock_held = static_cast<uint32_t>(ProbeLandlock(plan.landlock_canary));
  }
  ladder.Enter(Stage::kDescriptors);
  ladder.Must(KeepOnlyInitFds(context, stdio, extra));
  // Only now: until here the table was the supervisor's, with its descriptors in it.
  ladder.Enter(Stage::kRlimits);
  ladder.Must(EnforceRlimits(admission, ladder.item()));
  if (container) {
    ladder.Must(AwaitHelper(helper));
  }
  RunInit(context, duty);
}

}  // namespace coffer::isolation
