// SPDX-License-Identifier: Apache-2.0
#include "call/begin.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/sys.h"
#include "isolation/compose.h"
#include "isolation/prepared_tree.h"
#include "limits/unified.h"

namespace coffer::call {
namespace {

// What resolving may add to a command line: an interpreter, its options, paths of inputs.
constexpr size_t kResolvedBytes = 64 << 10;

size_t RoomFor(const RunRequest& request) {
  size_t bytes = kResolvedBytes;
  for (const std::string& word : request.command) {
    bytes += word.size() + 1;
  }
  for (const auto& [name, value] : request.envelope.env) {
    bytes += name.size() + value.size() + 2;
  }
  return bytes;
}

// Sharing memory takes root, and cgroups of v1, where the payload can join its memory cgroup without init.
#ifdef COFFER_SANITIZED
bool MayShareMemory() { return false; }  // a sanitizer's runtime takes the other's stack for a bug
#else
bool MayShareMemory() { return ::geteuid() == 0 && !limits::UnifiedCgroups(); }
#endif

Result<std::unique_ptr<isolation::Boundary>> Clone(const isolation::BoundaryPlan& plan,
                                                   size_t call_bytes, isolation::OwnMemory own) {
  TRY_ASSIGN(isolation::Boundary boundary, isolation::Boundary::Spawn(plan, call_bytes, own));
  return std::make_unique<isolation::Boundary>(std::move(boundary));
}

void CloneShared(size_t call_bytes, isolation::OwnMemory own, isolation::UidRange uids,
                 Begun& begun) {
  begun.plan = std::make_unique<isolation::BoundaryPlan>();
  begun.plan->level = policy::Level::kContainer;
  begun.plan->own_uid = true;
  begun.plan->uids = uids;
  begun.plan->shares_memory = true;
  if (Result<std::unique_ptr<isolation::Boundary>> made = Clone(*begun.plan, call_bytes, own);
      made.ok()) {
    begun.boundary = std::move(made).value();
  } else {
    begun.plan.reset();
  }
}

}  // namespace

isolation::BoundaryPlan BeginPlan(const RunRequest& request, bool privileged, UniqueFd& devices) {
  if (privileged && !request.envelope.tty) {
    if (Result<UniqueFd> tree = isolation::OpenPreparedTree(isolation::DeviceTree()); tree.ok()) {
      devices = std::move(tree).value();
    }
  }
  return isolation::BeginContainer(request.envelope, privileged, static_cast<bool>(devices));
}

Result<UniqueFd> CatchSignals() {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH}) {
    sigaddset(&caught, signal);
  }
  sigset_t blocked = caught;
  sigaddset(&blocked, SIGPIPE);  // a reader that went away shows as EPIPE
  sigaddset(&blocked, SIGTTOU);  // restoring our terminal from the background must not stop us
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  ::signal(
      SIGCHLD,
      SIG_DFL);  // ignored by whoever started us, our children would be gone before we could ask
  const int fd = ::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) {
    return HostFault("internal.signals", "cannot watch for signals");
  }
  return UniqueFd(fd);
}

Status MakeStdio(bool tty, Begun& begun) {
  if (tty) {
    // The terminal is made inside; until then its descriptors are places to put it.
    for (UniqueFd& fd : begun.theirs) {
      TRY_ASSIGN(fd, sys::Open("/dev/null", O_RDWR));
    }
    return {};
  }
  TRY_ASSIGN(sys::Pipe in, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe out, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe err, sys::MakePipe());
  // Only our ends may be non-blocking: programs expect blocking stdio. The flag is per open file, and the two ends of
  // a pipe are two open files.
  ::fcntl(in.write_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(out.read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read_end.get(), F_SETFL, O_NONBLOCK);
  begun.theirs[0] = std::move(in.read_end);
  begun.theirs[1] = std::move(out.write_end);
  begun.theirs[2] = std::move(err.write_end);
  begun.ours = {std::move(in.write_end), std::move(out.read_end), std::move(err.read_end)};
  return {};
}

Begun BeginUnread(std::span<const std::string_view> words, isolation::OwnMemory own) {
  Begun begun;
  size_t bytes = kResolvedBytes;
  bool flags = true;
  for (const std::string_view word : words) {
    bytes += word.size() + 2;
    flags = flags && word != "--";
    if (flags && (word.starts_with("--level") || word.starts_with("--state") || word == "--help" ||
                  word == "-h")) {
      return begun;
    }
  }
  if (words.empty() || !MayShareMemory()) {
    return begun;
  }
  if (Result<UniqueFd> signals = CatchSignals(); signals.ok()) {
    begun.signals = std::move(signals).value();
    CloneShared(bytes, own, {}, begun);
  }
  return begun;
}

void BeginEarly(const RunRequest& request, Begun& begun) {
  const size_t bytes = RoomFor(request);
  const bool container = request.envelope.level != policy::Level::kProcess;
  const auto fits = [&] {
    return container && begun.boundary->call_room() >= bytes &&
           begun.plan->uids.first == request.uids.first &&
           begun.plan->uids.count == request.uids.count;
  };
  if (begun.boundary != nullptr && !fits()) {
    begun.boundary.reset();
    begun.plan.reset();
  }
  // What is recorded has the log's key in its memory, and shares that with nobody.
  if (begun.boundary == nullptr && container && request.record == nullptr && MayShareMemory()) {
    CloneShared(bytes, request.own, request.uids, begun);
  }
  if (begun.boundary == nullptr) {
    return;
  }
  isolation::BoundaryPlan plan = BeginPlan(request, /*privileged=*/true, begun.devices);
  plan.shares_memory = true;
  plan.uids = request.uids;
  *begun.plan = std::move(plan);
  if (!begun.boundary->Identify().ok()) {
    begun.boundary.reset();
    begun.plan.reset();
  }
}

Status Begin(const RunRequest& request, size_t call_bytes, Begun& begun) {
  begun.plan->uids = request.uids;
  TRY_ASSIGN(begun.boundary, Clone(*begun.plan, call_bytes, request.own));
  // From here on the child works beside us.
  return begun.boundary->Identify();
}

}  // namespace coffer::call
