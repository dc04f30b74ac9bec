// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/sys.h"
#include "isolation/child/clock.h"
#include "isolation/child/confine.h"
#include "isolation/child/handover.h"
#include "isolation/child/proc.h"
#include "isolation/child/root.h"
#include "isolation/seccomp/install.h"

namespace coffer::isolation {

using raw::Arg;
using raw::Syscall;

void Entry::Enter(Stage stage) {
  context_.report->entered_ns[static_cast<uint32_t>(stage)] = BootTime().count();
  context_.report->stage.store(static_cast<uint32_t>(stage), std::memory_order_release);
}

long Entry::Must(long answer) {
  if (answer < 0) {
    context_.report->error = static_cast<int32_t>(-answer);
    ::_exit(1);
  }
  return answer;
}

void Entry::Await(Stage stage, char word) {
  Enter(stage);
  Must(AwaitWord(word, context_.control, context_.supervisor));
}

void Entry::Begin() {
  Enter(Stage::kStart);
  if (context_.words != nullptr) {
    memset(context_.words, 0, context_.words_size);
  }
  // Set again after the change of identity, which clears it; between the two the supervisor's pidfd tells.
  Must(Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
}

void Entry::BeginNetwork() {
  if (container_) {
    Enter(Stage::kNetwork);
    helper_.report = context_.report;
    helper_.port_sockets = plan_.port_sockets;
    helper_.name_sockets = plan_.name_sockets;
    Must(StartHelper(&helper_));
    Must(Syscall(SYS_unshare, CLONE_NEWIPC));
  }
  HeedEverySignal();
}

void Entry::TakeIdentity() {
  Await(Stage::kAwaitIdentity, 'I');
  Enter(Stage::kIdentity);
  if (powerful()) {
    Must(EnforceIdentity(container_ ? plan_.uid : admission_.host_uid,
                         admission_.groups_allowed != 0));
  }
  Enter(Stage::kCounters);
  if (container_) {
    context_.report->counters_bounded = EnforceCounters() ? 1 : 0;
  }
  clock_ = container_ && MakeClock(plan_.clock_offsets);
}

// The half of the private root that the envelope alone decides.
void Entry::BeginRoot() {
  if (!container_) {
    return;
  }
  Enter(Stage::kRootMount);
  root_ = static_cast<int>(Must(MountRoot()));
  Enter(Stage::kPopulate);
  Must(Populate(plan_.root, root_, &context_.report->tmpfs, item()));
  Enter(Stage::kDevices);
  int32_t trees[kMaxTrees];
  Must(OpenSources(plan_.root, nullptr, trees, item()));
  Must(AttachBinds(plan_.root, trees, root_, item()));
  Enter(Stage::kProc);
  if (plan_.want_proc) {
    context_.report->proc_mounted =
        static_cast<uint32_t>(Must(MountProc(plan_.proc, root_, clock_, item())));
  }
  Must(MountPts());
}

void Entry::AwaitPlan() {
  Await(Stage::kAwaitPlan, 'P');
  std::copy(std::begin(admission_.stdio), std::end(admission_.stdio), stdio_);
}

// The old root is left for good, with the sources of all mounts in hand; then what the command needs is put in place.
void Entry::EnterRoot() {
  if (!container_) {
    return;
  }
  const RootPart& part = plan_.call_root;
  int32_t trees[kMaxTrees];
  Enter(Stage::kSources);
  Must(OpenSources(part, admission_.trees, trees, item()));
  Enter(Stage::kPivot);
  Must(PivotInto(root_));
  Enter(Stage::kPopulateCall);
  Must(Populate(part, root_, nullptr, item()));
  Enter(Stage::kAttach);
  Must(AttachBinds(part, trees, root_, item()));
  Must(SealRoot(root_));
  ::close(root_);  // in the supervisor's table too: nothing outside may hold this mount
}

void Entry::OpenTerminal() {
  if (!container_) {
    return;
  }
  Enter(Stage::kPty);
  if (plan_.tty) {
    const auto terminal = static_cast<int32_t>(Must(OpenPty(context_.report)));
    std::fill(std::begin(stdio_), std::end(stdio_), terminal);
  }
  Enter(Stage::kHostname);
  Must(Syscall(SYS_sethostname, Arg(plan_.hostname.c_str()),
               static_cast<long>(plan_.hostname.size())));
}

void Entry::LeaveSession() {
  Enter(Stage::kKeyring);
  Must(DetachKeyring());
  Enter(Stage::kSession);
  // A process group of its own, so that the terminal's Ctrl-C reaches init through the supervisor only. The payload gets
  // a session of its own; a second one for init would cost an autogroup.
  Must(Syscall(SYS_setpgid, 0, 0));
}

// Without a pid namespace, what loses its parent comes to init, and is found there.
void Entry::KeepReachOfChildren() {
  if (container_) {
    return;
  }
  Must(Syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
  duty_.ending = InitEnding::kKillReach;
  if (!plan_.scoped_kill) {
    // Now, because Landlock will not let us later.
    children_ = Must(
        Syscall(SYS_openat, AT_FDCWD, Arg("/proc/thread-self/children"), O_RDONLY | O_CLOEXEC));
    duty_.ending = InitEnding::kKillChildren;
  }
}

void Entry::GainNothingMore() {
  Enter(Stage::kBoundingSet);
  if (powerful()) {
    Must(EnforceNoGain());
  }
}

// Outside a container the rules are made without power over the host's files, further down.
void Entry::MakeRules() {
  Enter(Stage::kLandlockRules);
  if (container_ && plan_.landlock_abi > 0) {
    ruleset_ =
        static_cast<int>(Must(MakeLandlockRules(plan_.landlock_abi, plan_.landlock, true, item())));
  }
  Enter(Stage::kDetach);
  if (container_) {
    Must(DetachOldRoot());
  }
}

void Entry::AwaitAdmission() { Await(Stage::kAwaitAdmission, 'A'); }

void Entry::EnterCgroups() {
  Enter(Stage::kJoinCgroup);
  Must(JoinCgroups(admission_, item()));
  if (container_) {
    Enter(Stage::kCgroupNamespace);
    Must(Syscall(SYS_unshare, CLONE_NEWCGROUP));
    MountCgroup(plan_.cgroup_type);
  }
}

void Entry::EnterNetwork() {
  if (container_) {
    Enter(Stage::kLoopback);
    Must(isolation::EnterNetwork(helper_));
  }
}

void Entry::DropPower() {
  Enter(Stage::kCapabilities);
  if (powerful()) {
    Must(EnforceNoCapabilities());
  }
  Enter(Stage::kNoNewPrivs);
  Must(EnforceNoNewPrivs());
  Must(EnforceInitPosture());
}

void Entry::EnterLandlock() {
  Enter(Stage::kLandlock);
  if (ruleset_ >= 0) {
    Must(isolation::EnterLandlock(ruleset_));
  } else if (plan_.landlock_abi > 0) {
    Must(EnforceLandlock(plan_.landlock_abi, plan_.landlock, item()));
  }
}

void Entry::EnterFilter() {
  Enter(Stage::kSeccomp);
  long listener = InstallFilter(plan_.filter);
  if (listener == -EBUSY) {
    // Another sandbox around us has a listener already: refusals stay refusals, but no record of them reaches us.
    Must(InstallFilterUnrecorded(plan_.unserved_filter.empty() ? plan_.filter
                                                               : std::span(plan_.unserved_filter)));
    listener = -1;
    context_.report->denials_unrecorded = 1;
  } else {
    Must(listener);
  }
  context_.report->listener_fd = static_cast<int32_t>(listener);
  Enter(Stage::kLandlockProbe);
  if (plan_.landlock_abi > 0) {
    context_.report->landlock_held = static_cast<uint32_t>(ProbeLandlock(plan_.landlock_canary));
  }
}

void Entry::LeaveTable() {
  Enter(Stage::kDescriptors);
  Must(KeepOnlyInitFds(context_, stdio_, children_));
  // Only now: until here the table was the supervisor's, with its descriptors in it.
  Enter(Stage::kRlimits);
  Must(EnforceRlimits(admission_, item()));
  if (container_) {
    Must(AwaitHelper(helper_));
  }
}

}  // namespace coffer::isolation
