// SPDX-License-Identifier: Apache-2.0
#include "call/run/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/quantity.h"
#include "base/sys.h"
#include "call/run/held_access.h"
#include "isolation/process_tree.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr Nanos kFirstTick = std::chrono::milliseconds(20);
// Between a signal that asks the command to end and SIGKILL. As long as that, output is still taken
// to a reader that does not read.
constexpr Nanos kGrace = std::chrono::seconds(2);

// Adds descriptors to a poll set and tells afterwards which fired. A descriptor of -1 is left out by the kernel.
class PollSet {
 public:
  size_t Add(int fd, short events) {
    entries_[count_] = {fd, events, 0};
    return count_++;
  }
  long Wait(Nanos timeout) {
    timespec time{timeout.count() / 1000000000, timeout.count() % 1000000000};
    return Syscall(SYS_ppoll, Arg(entries_.data()), static_cast<long>(count_),
                   timeout == Nanos::max() ? 0 : Arg(&time), 0, 0);
  }
  short operator[](size_t at) const {
    return entries_[at].fd < 0 ? static_cast<short>(0) : entries_[at].revents;
  }

 private:
  std::array<pollfd, 16> entries_{};
  size_t count_ = 0;
};

}  // namespace

Supervision::Supervision(const policy::Envelope& envelope, isolation::Boundary& boundary,
                         limits::Cgroup& cgroup, int signal_fd, bool hashing)
    : envelope_(envelope),
      boundary_(boundary),
      cgroup_(cgroup),
      signal_fd_(signal_fd),
      budget_{envelope.limits.output},
      out_(STDOUT_FILENO, &budget_, hashing),
      err_(STDERR_FILENO, &budget_, hashing),
      in_(STDIN_FILENO) {}

void Supervision::Attach(SupervisorStdio stdio) {
  out_.Attach(std::move(stdio.out));
  err_.Attach(std::move(stdio.err));
  in_.Attach(std::move(stdio.in));
}

void Supervision::AttachTerminal(UniqueFd master, Terminal* own_terminal) {
  pty_ = std::move(master);
  ::fcntl(pty_.get(), F_SETFL, O_RDWR | O_NONBLOCK);
  // One descriptor for each owner: output, input, and the window's size.
  out_.Attach(UniqueFd(::fcntl(pty_.get(), F_DUPFD_CLOEXEC, 3)));
  in_.Attach(UniqueFd(::fcntl(pty_.get(), F_DUPFD_CLOEXEC, 3)));
  own_terminal_ = own_terminal;
  own_terminal_->CopySizeTo(pty_.get());
}

// No process inside reads it any more. The process that writes to our stdin must hear of that, as it would without us.
void Supervision::ReleaseStdin() {
  if (!std::exchange(stdin_released_, true)) {
    const Result<UniqueFd> null = sys::Open("/dev/null", O_RDONLY);
    if (null.ok()) {
      (void)Syscall(SYS_dup3, null->get(), STDIN_FILENO, 0);
    }
  }
}

limits::Events Supervision::EventsNow() const {
  limits::Events events;
  events.refusals_unseen = !cgroup_.layers().Has(policy::Layer::kCgroupPids);
  events.wall = deadline_.elapsed();
  events.wall_spent = deadline_.Spent();
  events.output_bytes = budget_.produced;
  events.disk_bytes = disks_.bytes();
  events.disk_inodes = disks_.inodes();
  events.disk_unknown = disks_.unknown();
  events.full_place = full_place_;
  return events;
}

void Supervision::Breached(limits::Breach breach) {
  if (!breach_ && !ended_) {
    breach_ = std::move(breach);
    boundary_.Kill();
  }
}

void Supervision::Interrupt(int signal) {
  if (interrupted_by_ != 0) {
    boundary_.Kill();  // asked twice
    return;
  }
  interrupted_by_ = signal;
  kill_at_ = BootTime() + kGrace;
  boundary_.Forward(signal);
}

void Supervision::OnSignal() {
  signalfd_siginfo info{};
  while (Syscall(SYS_read, signal_fd_, Arg(&info), sizeof(info)) ==
         static_cast<long>(sizeof(info))) {
    switch (info.ssi_signo) {
      case SIGINT:
      case SIGTERM:
      case SIGQUIT:
        if (ended_) {
          out_.DropReader();  // told to end while our own reader is slow
          err_.DropReader();
        } else {
          Interrupt(static_cast<int>(info.ssi_signo));
        }
        break;
      case SIGWINCH:
        if (own_terminal_ != nullptr) {
          own_terminal_->CopySizeTo(pty_.get());
        }
        break;
      case SIGHUP:
        // The caller closed the terminal: a command that ignores it must not go on unseen.
        if (own_terminal_ != nullptr) {
          Interrupt(SIGHUP);
          break;
        }
        [[fallthrough]];
      default:
        boundary_.Forward(static_cast<int>(info.ssi_signo));
    }
  }
}

limits::TreeUsage& Supervision::Tree() {
  if (tree_ == nullptr) {
    tree_ = std::make_unique<limits::TreeUsage>(boundary_.init_pid(), envelope_.limits.memory);
    for (const UniqueFd& place : boundary_.tmpfs()) {
      tree_->CountTmpfs(place.get());
    }
    if (boundary_.has_pid_namespace()) {  // the container level: then the network is its own, too
      tree_->CountNetwork();
    }
    tree_->StopAt(deadline_.at());
  }
  return *tree_;
}

// What lies in /workspace, if it is not a directory of the host: a program may remove it before the end.
void Supervision::LookAtWorkspace() {
  const std::vector<UniqueFd>& places = boundary_.tmpfs();
  struct statfs info;
  if (envelope_.workspace.empty() && !places.empty() &&
      ::fstatfs(places.front().get(), &info) == 0) {
    disks_.AtLeast((info.f_blocks - info.f_bfree) * static_cast<uint64_t>(info.f_bsize));
  }
}

// How full the private places are at the end. Their own limit made writes fail; here it is only reported.
void Supervision::CheckPrivatePlaces() {
  // In the order of isolation/compose.cc: /workspace, unless it is a directory of the host, and /tmp.
  bool workspace = envelope_.workspace.empty();
  for (const UniqueFd& place : boundary_.tmpfs()) {
    struct statfs info;
    if (::fstatfs(place.get(), &info) == 0) {
      const auto block = static_cast<uint64_t>(info.f_bsize);
      const uint64_t used = (info.f_blocks - info.f_bfree) * block;
      if (workspace) {  // its size is the cap
        disks_.AtLeast(used);
      }
      if (info.f_bfree == 0 || info.f_ffree == 0) {
        full_place_ = {workspace ? "/workspace" : "/tmp (also /dev/shm)",
                       workspace ? "--disk" : "--tmp", used, info.f_files - info.f_ffree,
                       info.f_bfree != 0};
      }
    }
    workspace = false;
  }
  quota_full_ = quota_full_ || disks_.Full();
}

// A moment between half of `around` and one and a half from now: what is sampled must not foresee the samples.
Nanos Supervision::Sometime(Nanos around) const {
  uint32_t random = 0;
  Syscall(SYS_getrandom, Arg(&random), sizeof(random), 0);
  return BootTime() + around / 2 + Nanos(around.count() * (random >> 16) / 65536);
}

void Supervision::CheckUsage() {
  const bool by_cgroup = cgroup_.layers().Has(policy::Layer::kCgroupCpu) &&
                         cgroup_.layers().Has(policy::Layer::kCgroupMemory);
  // Before execve the payload shares init's memory, and cannot be looked at.
  const bool started = boundary_.exec_happened();
  if (started && !ended_) {
    LookAtWorkspace();
  }
  if (by_cgroup) {
    if (Result<limits::Usage> usage = cgroup_.ReadUsage(); usage.ok()) {
      if (started && !ended_) {
        if (const uint64_t uncounted = Tree().MeasureUncounted(usage->cpu); uncounted > 0) {
          usage->uncounted_peak = uncounted;
          usage->with_uncounted = std::max(usage->memory, cgroup_.ReadHeldMemory()) + uncounted;
        }
      }
      limits::KeepPeaks(usage_, *usage);
      usage_ = *usage;
    } else if (!ended_) {
      usage_.unreadable = "the figures of the call's cgroup cannot be read";
      memory_sampled_ = true;
    }
  } else if (started) {
    memory_sampled_ = true;
    if (Result<limits::Usage> usage = Tree().Measure(); usage.ok()) {
      limits::KeepPeaks(usage_, *usage);
      usage_ = *usage;
      if (denials_.threads() != nullptr) {
        denials_.threads()->Counted(usage_.pids);
      }
    }
  }
  if (by_cgroup && started && !envelope_.mounts.empty() && disks_.empty() &&
      !cgroup_.layers().Has(policy::Layer::kCgroupIo)) {
    if (const Result<limits::Usage> walked = Tree().Measure(); walked.ok()) {
      usage_.io_bytes = std::max(usage_.io_bytes, walked->io_bytes);
    }
  }
  const Nanos until = std::min(limits::NextCpuCheck(usage_.cpu, envelope_.limits.cpu, cpus_),
                               limits::kUncountedCheck);
  next_tick_ = by_cgroup ? BootTime() + until : Sometime(std::min(until, limits::kMemoryCheck));
}

void Supervision::CheckDisk() {
  // Files without a name are found through the processes that hold them. When all have ended there are none.
  limits::HeldFiles held;
  if (!ended_ && boundary_.exec_happened()) {
    if (const Result<limits::Usage> walked = Tree().Measure(); walked.ok()) {
      held = Tree().held();
      // On v1 the kernel writes dirty pages back in its own name, so the cgroup counts too little.
      usage_.io_bytes = std::max(usage_.io_bytes, walked->io_bytes);
    }
  }
  disks_.Look(held, Tree().MemoryDevices());
  usage_.io_bytes = std::max(usage_.io_bytes, disks_.written());
}

void Supervision::Tick() {
  const Nanos now = BootTime();
  if (kill_at_.count() != 0 && now >= kill_at_) {
    boundary_.Kill();
    kill_at_ = Nanos(0);
  }
  if (now >= next_tick_) {
    if (!settled_) {
      // A call that lives this long is worth a little more work: to be told of an OOM kill.
      settled_ = true;
      oom_fd_ = cgroup_.oom_event_fd();
    }
    CheckUsage();
  }
  if (!disks_.empty() && now >= disks_.next()) {
    CheckDisk();
  }
  if (auto breach = limits::FindBreach(envelope_.limits, usage_, EventsNow())) {
    Breached(std::move(*breach));
  }
}

Nanos Supervision::UntilNextTick() const {
  if (ended_) {
    return Nanos::max();
  }
  Nanos at = next_tick_;
  if (!disks_.empty()) {
    at = std::min(at, disks_.next());
  }
  if (kill_at_.count() != 0) {
    at = std::min(at, kill_at_);
  }
  return std::max(at - BootTime(), Nanos(0));
}

void Supervision::PollOnce(Nanos timeout) {
  PollSet set;
  const size_t life = set.Add(ended_ ? -1 : boundary_.pidfd(), POLLIN);
  const size_t signals = set.Add(signal_fd_, POLLIN);
  const size_t wall = set.Add(ended_ ? -1 : deadline_.fd(), POLLIN);
  const size_t refused =
      set.Add(listener_.valid() && !denials_.hung_up() ? listener_.get() : -1, POLLIN);
  const size_t oom = set.Add(ended_ ? -1 : oom_fd_, POLLIN);
  const bool asks = held_ != nullptr && !ended_;
  const size_t notice = set.Add(asks ? held_->notice_fd() : -1, POLLIN);
  const size_t answer = set.Add(asks ? held_->decider_fd() : -1, POLLIN);
  // While a question stands on the terminal, the command neither writes over it nor reads the answer.
  const bool held = asks && held_->holds_terminal();
  const size_t out_read = set.Add(held ? -1 : out_.read_fd(), POLLIN);
  const size_t err_read = set.Add(held ? -1 : err_.read_fd(), POLLIN);
  const size_t out_write = set.Add(held ? -1 : out_.write_fd(), POLLOUT);
  const size_t err_write = set.Add(held ? -1 : err_.write_fd(), POLLOUT);
  const size_t in_read = set.Add(ended_ || held ? -1 : in_.read_fd(), POLLIN);
  const size_t in_write = set.Add(ended_ ? -1 : in_.write_fd(), POLLOUT);
  if (set.Wait(timeout) < 0) {
    return;  // EINTR: whatever it was shows again
  }
  if (set[refused] != 0) {
    if (Status served = denials_.Serve(listener_.get()); !served.ok()) {
      // A process that made a refused call waits for an answer that will not come.
      failure_ = std::move(served.error());
      boundary_.Kill();
      listener_.Reset();
    }
  }
  if (set[signals] != 0) {
    OnSignal();
  }
  if (asks && set[notice] != 0) {
    held_->OnNotice();
  }
  if (asks && set[answer] != 0) {
    held_->OnAnswer();
  }
  if (set[oom] != 0 && cgroup_.OomHappened()) {
    CheckUsage();
  }
  if (set[out_read] != 0) {
    out_.OnReadable();
  }
  if (set[err_read] != 0) {
    err_.OnReadable();
  }
  if (set[out_write] != 0) {
    out_.OnWritable();
  }
  if (set[err_write] != 0) {
    err_.OnWritable();
  }
  if (set[in_read] != 0) {
    in_.OnReadable();
  }
  if (set[in_write] != 0) {
    in_.OnWritable();
  }
  if (in_.reader_gone() && !pty_ && !ended_) {
    ReleaseStdin();
  }
  if (set[wall] != 0 || set[oom] != 0) {
    if (auto breach = limits::FindBreach(envelope_.limits, usage_, EventsNow())) {
      Breached(std::move(*breach));
    }
  }
  ended_ = ended_ || set[life] != 0;
}

// Once everything has ended: what the kernel summed up for us where no cgroup did.
void Supervision::AddWhatChildrenUsed() {
  const limits::ChildUse now = limits::ReadChildUse();
  if (!cgroup_.layers().Has(policy::Layer::kCgroupCpu)) {
    usage_.cpu = std::max(usage_.cpu, now.cpu - children_at_start_.cpu);
  }
  usage_.io_bytes = std::max(usage_.io_bytes, now.io_bytes - children_at_start_.io_bytes);
}

Enforced Supervision::WhatIsEnforced() const {
  const policy::LayerSet layers = cgroup_.layers();
  Enforced enforced;
  enforced.cpu = layers.Has(policy::Layer::kCgroupCpu);
  enforced.memory = layers.Has(policy::Layer::kCgroupMemory) && !memory_sampled_;
  enforced.looks_beside_cgroup = enforced.memory && layers.Has(policy::Layer::kCgroupCpu);
  enforced.processes = layers.Has(policy::Layer::kCgroupPids);
  enforced.disk = disks_.enforced();
  // Only v2 knows for whom the kernel writes back.
  enforced.io = layers.Has(policy::Layer::kCgroupIo) && cgroup_.clone_into_fd() >= 0;
  return enforced;
}

void Supervision::FinalUsage(bool wanted, SupervisionResult& result) {
  const bool clean = result.end.exit_code == 0 && !breach_;
  if (wanted || !clean) {
    if (Result<limits::Usage> usage = cgroup_.ReadUsage(); usage.ok()) {
      limits::KeepPeaks(usage_, *usage);
      usage_ = *usage;
    }
    CheckPrivatePlaces();
  } else {
    cgroup_.ReadPids(usage_);
  }
  if (denials_.threads() != nullptr && denials_.threads()->refused() > 0) {
    usage_.pids_denied = std::max(usage_.pids_denied, denials_.threads()->refused());
    // All of the cap was in use then, also if no sample saw it.
    usage_.pids_peak = std::max<uint64_t>(usage_.pids_peak, envelope_.limits.processes + 1);
  }
  if (breach_) {
    limits::ExplainWall(usage_, *breach_);
  }
  AddWhatChildrenUsed();
  if (!disks_.empty()) {
    CheckDisk();
  }
  // A directory of the host and the disk behind it have a watch, not a wall: what went past it since the last look is a
  // breach all the same.
  if (!breach_ && (disks_.over() || usage_.io_bytes > envelope_.limits.io)) {
    limits::Usage io;
    io.io_bytes = usage_.io_bytes;
    breach_ = limits::FindBreach(envelope_.limits, io, EventsNow());
  }
  result.enforced = WhatIsEnforced();
  result.quota_full = quota_full_;
  result.usage = usage_;
  result.events = EventsNow();
  result.events.exit_signal = result.end.signal;
  result.events.failed = !clean;
  // The kernel may have chosen init, which then could not say that the command ran.
  if (!breach_ && interrupted_by_ == 0 && (result.end.ran || usage_.oom_kills > 0)) {
    breach_ = clean ? limits::FindRefusedTasks(envelope_.limits, usage_, result.events)
                    : limits::ExplainFailure(envelope_.limits, usage_, result.events);
  }
}

Result<SupervisionResult> Supervision::Run(bool wanted_usage) {
  TRY_ASSIGN(deadline_, limits::Deadline::Start(envelope_.limits.wall));
  listener_ = boundary_.TakeListener();
  denials_.ServeCalls(boundary_.plan(), boundary_.host_uid(), boundary_.tmpfs(),
                      envelope_.limits.memory);
  if (counts_threads_ && listener_.valid()) {
    denials_.ServeThreads(std::make_unique<isolation::ThreadGate>(
        envelope_.limits.processes + 1, [this] { return Tree().CountTasks(); }));
  }
  cpus_ = limits::UsableCpus();
  children_at_start_ = limits::ReadChildUse();
  const bool by_cgroup = cgroup_.layers().Has(policy::Layer::kCgroupMemory);
  if (!by_cgroup) {
    (void)Tree();  // remembers what the host's shared memory was before
  }
  next_tick_ = by_cgroup ? BootTime() + kFirstTick : Sometime(limits::kMemoryCheck);
  disks_.LookAt(next_tick_);
  while (!ended_) {
    const Nanos timeout = UntilNextTick();
    PollOnce(timeout);
    if (!ended_ && UntilNextTick() == Nanos(0)) {
      Tick();
    }
  }
  SupervisionResult result;
  Result<isolation::PayloadEnd> end = boundary_.Reap();
  if (!boundary_.has_pid_namespace()) {
    // What outlived the payload is still there, and may hold the pipes open.
    TRY(cgroup_.Kill());
    TRY(isolation::EndDescendants());
  }
  TRY_ASSIGN(result.end, std::move(end));
  // Every writer is gone: what is left in the pipes is all there will be. A reader that does not
  // read keeps us, until we are told to end.
  const Nanos drop_at = BootTime() + kGrace;
  while (Draining()) {
    PollOnce(interrupted_by_ == 0 ? Nanos::max() : std::max(drop_at - BootTime(), Nanos(0)));
    if (interrupted_by_ != 0 && BootTime() >= drop_at) {
      out_.DropReader();
      err_.DropReader();
    }
  }
  if (failure_) {
    return std::move(*failure_);
  }
  for (const output::Relay* relay : {&out_, &err_}) {
    if (relay->error() != 0) {
      return sys::ErrnoError("internal.output", "cannot deliver the command's output",
                             -relay->error());
    }
  }
  denials_.TakeLateRefusals();
  FinalUsage(wanted_usage, result);
  result.breach = std::move(breach_);
  result.interrupted_by = interrupted_by_;
  return result;
}

}  // namespace coffer::call
