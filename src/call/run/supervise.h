// SPDX-License-Identifier: Apache-2.0
//
// The rung watch: a Supervision lasts from the start of the payload until its last process has ended.
//
// One loop, one thread: carries stdio, answers refused system calls, forwards signals, and kills at the first breach
// of a cap. It returns only when init is reaped, so a kill is confirmed before the caller hears of it. Nothing in the
// loop blocks but poll, so no reader and no payload can keep it from its deadlines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "call/run/terminal.h"
#include "isolation/boundary.h"
#include "isolation/seccomp/notify.h"
#include "limits/breach.h"
#include "limits/cgroup/cgroup.h"
#include "limits/child_use.h"
#include "limits/deadline.h"
#include "limits/disk_growth.h"
#include "limits/tree_usage.h"
#include "output/relay.h"
#include "policy/envelope.h"

namespace coffer::call {

// Our ends of the payload's stdio.
struct SupervisorStdio {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

// Which caps the kernel kept, or counted exactly, all that was seen of it. The others were sampled: their figures are
// lower bounds.
struct Enforced {
  bool cpu = false;
  bool memory = false;
  bool processes = false;
  bool disk = false;
  bool io = false;
  bool looks_beside_cgroup = false;  // for memory that the cgroup does not count
};

struct SupervisionResult {
  isolation::PayloadEnd end;
  std::optional<limits::Breach> breach;
  limits::Usage usage;
  limits::Events events;
  Enforced enforced;
  bool quota_full = false;  // a writable directory of the host ended at its quota: writes failed
  int interrupted_by = 0;   // the signal that we were told to end with
};

class HeldAccess;

class Supervision {
 public:
  Supervision(const policy::Envelope& envelope, isolation::Boundary& boundary,
              limits::Cgroup& cgroup, int signal_fd, bool hashing);

  // Writable host directories whose growth is watched.
  void WatchDisks(std::vector<limits::DiskWatch> disks) {
    disks_ = limits::DiskGrowth(std::move(disks));
  }
  // False: output that is cut has no marker, because it goes to a file or a pipe.
  void MarkCuts(bool marks) { budget_.marks = marks; }
  // Of the denials that a flood crowds out, those to list all the same (DenialRecorder::ListBeyond).
  void ListBeyond(isolation::DenialRecorder::GroupOf group) {
    denials_.ListBeyond(std::move(group));
  }
  // The filter asks for threads, because no cgroup counts them.
  void CountThreads() { counts_threads_ = true; }
  // Access requests of the call are decided meanwhile. `held` outlives this loop.
  void HoldAccess(HeldAccess* held) { held_ = held; }
  // Takes our ends of the stdio; with a terminal, its master instead.
  void Attach(SupervisorStdio stdio);
  void AttachTerminal(UniqueFd master, Terminal* own_terminal);

  // `wanted_usage`: measure at the end even if all went well (for a receipt).
  Result<SupervisionResult> Run(bool wanted_usage);

  const output::OutputBudget& budget() const { return budget_; }
  output::Relay& out() { return out_; }
  output::Relay& err() { return err_; }
  const output::Feed& in() const { return in_; }
  // The beginnings of stdin, stdout and stderr are kept for the record. Input typed at a terminal is not.
  void Keep(size_t most, bool stdin_too) {
    out_.Keep(most);
    err_.Keep(most);
    in_.Keep(stdin_too ? most : 0);
  }
  const isolation::DenialRecorder& denials() const { return denials_; }

 private:
  void PollOnce(Nanos timeout);
  void ReleaseStdin();
  void OnSignal();
  void Interrupt(int signal);
  void Tick();
  void CheckUsage();
  void CheckDisk();
  void LookAtWorkspace();
  void CheckPrivatePlaces();
  void AddWhatChildrenUsed();
  Enforced WhatIsEnforced() const;
  Nanos Sometime(Nanos around) const;
  limits::TreeUsage& Tree();
  void Breached(limits::Breach breach);
  limits::Events EventsNow() const;
  Nanos UntilNextTick() const;
  bool Draining() const { return out_.open() || err_.open(); }
  void FinalUsage(bool wanted, SupervisionResult& result);

  const policy::Envelope& envelope_;
  isolation::Boundary& boundary_;
  limits::Cgroup& cgroup_;
  int signal_fd_;
  output::OutputBudget budget_;
  output::Relay out_;
  output::Relay err_;
  output::Feed in_;
  bool stdin_released_ = false;
  UniqueFd listener_;
  UniqueFd pty_;
  Terminal* own_terminal_ = nullptr;
  isolation::DenialRecorder denials_;
  limits::Deadline deadline_;
  limits::Usage usage_;
  // A look saw memory that no cgroup counts (locks, netlink queues), or the cgroup could not be read.
  bool memory_sampled_ = false;
  std::unique_ptr<limits::TreeUsage> tree_;
  limits::DiskGrowth disks_;
  bool quota_full_ = false;
  std::optional<limits::Events::FullPlace> full_place_;
  limits::ChildUse children_at_start_;
  Nanos next_tick_{0};
  Nanos kill_at_{0};
  int interrupted_by_ = 0;
  unsigned cpus_ = 1;
  int oom_fd_ = -1;
  HeldAccess* held_ = nullptr;
  bool counts_threads_ = false;
  bool settled_ = false;
  bool ended_ = false;
  std::optional<limits::Breach> breach_;
  std::optional<Error> failure_;
};

}  // namespace coffer::call
