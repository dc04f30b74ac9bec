// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "base/sys.h"
#include "isolation/child/confine.h"
#include "isolation/child/init.h"
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
long AwaitAdmission(int control, int supervisor) {
  pollfd waits[2] = {{control, POLLIN, 0}, {supervisor, POLLIN, 0}};
  long got = 0;
  do {
    got = Syscall(SYS_ppoll, Arg(waits), 2, 0, 0, 0);
  } while (got == -EINTR);
  if (got < 0) {
    return got;
  }
  if (waits[1].revents != 0) {
    return -EPIPE;
  }
  char word = 0;
  got = Syscall(SYS_read, control, Arg(&word), 1);
  if (got < 0) {
    return got;
  }
  return got == 1 && word == 'A' ? 0 : -EPIPE;
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

// Ends the sharing of the supervisor's descriptor table and keeps four descriptors: 0, 1, 2 and the control socket.
// The supervisor guarantees that none of the four is below 3.
long KeepOnlyInitFds(const ChildContext& context) {
  // CLOSE_RANGE_UNSHARE (5.9) on an empty range copies the table; unshare(2) is refused by the filter already.
  long answer = Syscall(SYS_close_range, ~0U, ~0U, 2 /* CLOSE_RANGE_UNSHARE */);
  for (int i = 0; i < 3 && answer >= 0; ++i) {
    answer = Syscall(SYS_dup3, context.stdio[i], i, 0);
  }
  if (answer >= 0 && context.control != kControlFd) {
    answer = Syscall(SYS_dup3, context.control, kControlFd, O_CLOEXEC);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_close_range, kControlFd + 1, ~0U, 0);
  }
  return answer < 0 ? answer : 0;
}

// One word between init and its helper, who share memory and nothing else that could wait.
void Post(std::atomic<uint32_t>& flag) {
  flag.store(1, std::memory_order_release);
  Syscall(SYS_futex, Arg(&flag), FUTEX_WAKE, 1, 0, 0, 0);
}

void Await(std::atomic<uint32_t>& flag) {
  const timespec look_again{0, 1000000};  // in case the wake-up itself failed
  while (flag.load(std::memory_order_acquire) == 0) {
    Syscall(SYS_futex, Arg(&flag), FUTEX_WAIT, 0, Arg(&look_again), 0, 0);
  }
}

// Two things take long and wait for nobody: making the network namespace, and detaching the old root (the kernel waits
// for a grace period). A helper that shares our memory and descriptors does both beside us. We enter the network by
// descriptor; and we are not ready before the helper is gone, so nothing ever runs while the old root is there.
struct Helper {
  long pid = -1;
  long descriptor = -EIO;         // of the namespace, or -errno
  std::atomic<uint32_t> made{0};  // the network is there, or failed
  std::atomic<uint32_t> pivoted{0};
  long detached = -EIO;  // 0 once the old root is gone
  alignas(16) char stack[8192];
};

int RunHelper(void* given) {
  auto* helper = static_cast<Helper*>(given);
  helper->descriptor = MakeNetwork();
  Post(helper->made);
  Await(helper->pivoted);
  helper->detached = Syscall(SYS_umount2, Arg("/"), MNT_DETACH);
  Syscall(SYS_exit, 0);
  return 0;
}

long StartHelper(Helper* helper) {
  helper->pid = ::clone(RunHelper, helper->stack + sizeof(helper->stack),
                        CLONE_VM | CLONE_FILES | SIGCHLD, helper);
  return helper->pid < 0 ? -EAGAIN : 0;
}

long AwaitHelper(const Helper& helper) {
  long answer = 0;
  do {
    answer = Syscall(SYS_wait4, helper.pid, 0, 0, 0);
  } while (answer == -EINTR);
  return answer < 0 ? answer : helper.detached;
}

long EnterNetwork(Helper& helper) {
  Await(helper.made);
  if (helper.descriptor < 0) {
    return helper.descriptor;
  }
  long answer = Syscall(SYS_setns, helper.descriptor, CLONE_NEWNET);
  ::close(static_cast<int>(helper.descriptor));
  return answer;
}

void BuildPrivateRoot(const ChildContext& context, Ladder& ladder, const OpenedSources& sources) {
  const BoundaryPlan& plan = *context.plan;
  ladder.Enter(Stage::kRootMount);
  const int root = static_cast<int>(ladder.Must(MountRoot(plan)));
  ladder.Enter(Stage::kPopulate);
  ladder.Must(Populate(plan, root, context.report->tmpfs, ladder.item()));
  ladder.Enter(Stage::kAttach);
  ladder.Must(AttachSources(plan, sources, *context.admission, root, ladder.item()));
  ladder.Enter(Stage::kProc);
  if (plan.want_proc) {
    context.report->proc_mounted = static_cast<uint32_t>(ladder.Must(MountProc(root)));
  }
  if (plan.tty) {
    ladder.Must(MountPts(root));
  }
  ladder.Enter(Stage::kPivot);
  ladder.Must(PivotInto(root));
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

void EnterBoundary(const ChildContext& given) {
  ChildContext context = given;
  const BoundaryPlan& plan = *context.plan;
  const bool container = plan.level == policy::Level::kContainer;
  Ladder ladder(context);
  ladder.Enter(Stage::kStart);
  if (context.words != nullptr) {
    memset(context.words, 0, context.words_size);
  }

  // Set again after the change of identity, which clears it; between the two the control socket's end of file tells.
  ladder.Must(Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));

  OpenedSources sources;
  Helper helper;
  if (container) {
    // Before the supervisor is ready: what needs neither identity nor cgroup runs beside its work.
    ladder.Enter(Stage::kNetwork);
    ladder.Must(StartHelper(&helper));
    ladder.Enter(Stage::kOpenSources);
    ladder.Must(OpenSources(plan, &sources, ladder.item()));
  }

  ladder.Enter(Stage::kAwaitSupervisor);
  ladder.Must(AwaitAdmission(context.control, context.supervisor));
  ladder.Enter(Stage::kJoinCgroup);
  ladder.Must(JoinCgroups(*context.admission, ladder.item()));
  if (container) {
    ladder.Enter(Stage::kCgroupNamespace);
    ladder.Must(Syscall(SYS_unshare, CLONE_NEWCGROUP));
  }
  ladder.Enter(Stage::kIdentity);
  if (container || context.admission->host_uid != 0) {
    ladder.Must(EnforceIdentity(container ? plan.uid : context.admission->host_uid,
                                context.admission->groups_allowed != 0));
  }
  if (container) {
    BuildPrivateRoot(context, ladder, sources);
    Post(helper.pivoted);
    ladder.Enter(Stage::kLoopback);
    ladder.Must(EnterNetwork(helper));
    ladder.Enter(Stage::kPty);
    if (plan.tty) {
      const int terminal = static_cast<int>(ladder.Must(OpenPty(context.report)));
      std::fill(std::begin(context.stdio), std::end(context.stdio), terminal);
    }
    ladder.Enter(Stage::kHostname);
    ladder.Must(SetHostname(plan.hostname));
  }
  ladder.Must(Stage::kKeyring, DetachKeyring);
  ladder.Enter(Stage::kSession);
  // A process group of its own, so that the terminal's Ctrl-C reaches init through the supervisor only. The payload gets
  // a session of its own; a second one for init would cost an autogroup.
  ladder.Must(Syscall(SYS_setpgid, 0, 0));
  if (!container) {
    // Without a pid namespace, what loses its parent comes to init, and is found there.
    ladder.Must(Syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
  }
  ladder.Enter(Stage::kCapabilities);
  if (container || context.admission->host_uid != 0) {
    ladder.Must(EnforceNoCapabilities());
  }
  ladder.Must(Stage::kNoNewPrivs, EnforceNoNewPrivs);
  ladder.Must(EnforceInitPosture());
  ladder.Enter(Stage::kLandlock);
  if (plan.landlock_abi > 0) {
    ladder.Must(EnforceLandlock(plan.landlock_abi, plan.landlock, ladder.item()));
  }
  ladder.Enter(Stage::kSeccomp);
  long listener = InstallFilter(plan.filter);
  if (listener == -EBUSY) {
    // We run below somebody else's listener: refusals stay refusals, but nobody is told of them.
    ladder.Must(InstallFilterUnrecorded(plan.filter));
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
  ladder.Must(KeepOnlyInitFds(context));
  // Only now: until here the table was the supervisor's, with its descriptors in it.
  ladder.Enter(Stage::kRlimits);
  ladder.Must(EnforceRlimits(*context.admission, ladder.item()));
  if (container) {
    ladder.Must(AwaitHelper(helper));
  }
  RunInit(context.report, context.call, context.call_capacity, kControlFd, plan.scoped_kill,
          context.heap);
}

}  // namespace coffer::isolation
