// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
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
#include "isolation/landlock.h"
#include "isolation/seccomp/install.h"

namespace coffer::isolation {

using raw::Arg;
using raw::Syscall;

void Entry::Enter(Stage stage) {
  context_.report->entered_ns[static_cast<uint32_t>(stage)] = BootTime().count();
  // Release: a supervisor that reads the stage also reads the time that belongs to it.
  context_.report->stage.store(static_cast<uint32_t>(stage), std::memory_order_release);
}

long Entry::Must(long answer) {
  if (answer < 0) {
    context_.report->error = static_cast<int32_t>(-answer);
    // The kernel removes the unfinished namespaces. The report is in shared memory and stays for the
    // supervisor.
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
    helper_.port_sockets = start_.port_sockets;
    helper_.name_sockets = start_.name_sockets;
    Must(StartHelper(&helper_));
    Must(Syscall(SYS_unshare, CLONE_NEWIPC));
  }
  HeedEverySignal();
}

void Entry::TakeIdentity() {
  Await(Stage::kAwaitIdentity, 'I');
  Enter(Stage::kIdentity);
  if (powerful()) {
    Must(EnforceIdentity(container_ ? start_.uid : admission_.host_uid,
                         admission_.groups_allowed != 0));
  }
  Enter(Stage::kCounters);
  if (container_) {
    context_.report->counters_bounded = EnforceCounters() ? 1 : 0;
  }
  clock_ = container_ && MakeClock(start_.clock_offsets);
}

// The half of the private root that the envelope alone decides.
void Entry::BeginRoot() {
  if (!container_) {
    return;
  }
  Enter(Stage::kRootMount);
  root_ = static_cast<int>(Must(MountRoot()));
  Enter(Stage::kPopulate);
  // The descriptors of the places land in the table that the supervisor shares: by them it sees
  // later how full they are.
  Must(Populate(*context_.root, root_, &context_.report->tmpfs, item()));
  Enter(Stage::kDevices);
  int32_t trees[kMaxTrees];
  Must(OpenSources(*context_.root, nullptr, trees, item()));
  Must(AttachBinds(*context_.root, trees, root_, item()));
  Enter(Stage::kProc);
  if (start_.want_proc) {
    context_.report->proc_mounted =
        static_cast<uint32_t>(Must(MountProc(start_.proc, root_, clock_, item())));
  }
  Must(MountPts());
}

const PlanBlock* Entry::MapBlock(int file, uint64_t size) {
  const long map =
      Syscall(SYS_mmap, 0, static_cast<long>(size), PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  Must(map < 0 && map > -4096 ? map : 0);
  const auto* const block = reinterpret_cast<const PlanBlock*>(map);
  Must(ValidPlanBlock(block, size) ? 0 : -EINVAL);
  return block;
}

void Entry::AwaitPlan() {
  Await(Stage::kAwaitPlan, 'P');
  plan_ = MapBlock(admission_.plan_block, admission_.plan_size);
  std::copy(std::begin(admission_.stdio), std::end(admission_.stdio), stdio_);
}

// The old root is left for good, with the sources of all mounts in hand; then what the command needs is put in place.
void Entry::EnterRoot() {
  if (!container_) {
    return;
  }
  int32_t trees[kMaxTrees];
  Enter(Stage::kSources);
  Must(OpenSources(*plan_, admission_.trees, trees, item()));
  Enter(Stage::kPivot);
  Must(PivotInto(root_));
  TellRootLeft(&helper_);
  Enter(Stage::kPopulateCall);
  Must(Populate(*plan_, root_, nullptr, item()));
  Enter(Stage::kAttach);
  Must(AttachBinds(*plan_, trees, root_, item()));
}

void Entry::OpenTerminal() {
  if (!container_) {
    return;
  }
  Enter(Stage::kPty);
  if (start_.tty) {
    const auto terminal = static_cast<int32_t>(Must(OpenPty(context_.report)));
    std::fill(std::begin(stdio_), std::end(stdio_), terminal);
  }
  Enter(Stage::kHostname);
  Must(Syscall(SYS_sethostname, Arg(start_.hostname.c_str()),
               static_cast<long>(start_.hostname.size())));
}

void Entry::LeaveSession() {
  Enter(Stage::kKeyring);
  Must(DetachKeyring());
  Enter(Stage::kSession);
  // A process group of its own, so that the terminal's Ctrl-C reaches init through the supervisor
  // only. The payload gets a session of its own; a second one for init would cost an autogroup.
  Must(Syscall(SYS_setpgid, 0, 0));
}

// Without a pid namespace, what loses its parent comes to init, and is found there.
void Entry::KeepReachOfChildren() {
  if (container_) {
    return;
  }
  Must(Syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
  duty_.ending = InitEnding::kKillReach;
  if (!start_.scoped_kill) {
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

int Entry::MakeRuleset() {
  const int abi = plan_->landlock_abi;
  const int ruleset = static_cast<int>(Must(MakeLandlockRuleset(abi, container_)));
  *item() = 0;
  for (const PackedRule& rule : At(*plan_, plan_->landlock)) {
    Must(AddLandlockRule(abi, ruleset, At(*plan_, rule.path), rule.fd, rule.rights,
                         rule.required != 0));
    ++*item();
  }
  return ruleset;
}

// Outside a container the rules are made without power over the host's files, further down.
void Entry::MakeRules() {
  Enter(Stage::kLandlockRules);
  if (container_ && plan_->landlock_abi > 0) {
    ruleset_ = MakeRuleset();
  }
}

void Entry::AwaitAdmission() { Await(Stage::kAwaitAdmission, 'A'); }

// From here on nothing inside can write to the private root.
void Entry::EndRoot() {
  if (!container_) {
    return;
  }
  Enter(Stage::kSealRoot);
  if (admission_.ends_size > 0) {
    Must(AppendToFiles(*MapBlock(admission_.ends_block, admission_.ends_size), root_, item()));
  }
  Must(isolation::SealRoot(root_));
  ::close(root_);  // in the supervisor's table too: nothing outside may hold this mount
}

void Entry::EnterCgroups() {
  Enter(Stage::kJoinCgroup);
  Must(JoinCgroups(admission_, item()));
  if (container_) {
    Enter(Stage::kCgroupNamespace);
    // The root of the new namespace is the cgroup that we are in now (cgroup_namespaces(7)), so
    // this comes after joining.
    Must(Syscall(SYS_unshare, CLONE_NEWCGROUP));
    MountCgroup(start_.cgroup_type);
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
  // Without a capability Landlock and seccomp take a process only with this bit
  // (landlock_restrict_self(2), seccomp(2)).
  Must(EnforceNoNewPrivs());
  Must(EnforceInitPosture());
}

void Entry::EnterLandlock() {
  Enter(Stage::kLandlock);
  if (!container_ && plan_->landlock_abi > 0) {
    ruleset_ = MakeRuleset();
  }
  if (ruleset_ >= 0) {
    Must(isolation::EnterLandlock(ruleset_));
  }
}

void Entry::EnterFilter() {
  Enter(Stage::kSeccomp);
  const std::span<const sock_filter> filter = At(*plan_, plan_->filter);
  const std::span<const sock_filter> unserved = At(*plan_, plan_->unserved_filter);
  Must(EnforceCoreLimit());
  long listener = InstallFilter(filter);
  if (listener == -EBUSY) {
    // Another sandbox around us has a listener already: refusals stay refusals, but no record of them reaches us.
    Must(InstallFilterUnrecorded(unserved.empty() ? filter : unserved));
    listener = -1;
    context_.report->denials_unrecorded = 1;
  } else {
    Must(listener);
  }
  context_.report->listener_fd = static_cast<int32_t>(listener);
  Enter(Stage::kLandlockProbe);
  if (plan_->landlock_abi > 0) {
    context_.report->landlock_held =
        static_cast<uint32_t>(ProbeLandlock(At(*plan_, plan_->landlock_canary)));
  }
}

void Entry::LeaveTable() {
  Enter(Stage::kDescriptors);
  Must(KeepOnlyInitFds(context_, stdio_, children_));
  // Only now: until here the table was the supervisor's, with its descriptors in it.
  Enter(Stage::kRlimits);
  Must(EnforceRlimits(admission_, item()));
  if (container_) {
    Enter(Stage::kDetach);
    // The helper has kept every power that we gave up. Nothing of the command may run while it
    // lives.
    Must(AwaitHelper(helper_));
  }
}

}  // namespace coffer::isolation
