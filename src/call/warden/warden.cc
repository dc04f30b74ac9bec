// SPDX-License-Identifier: Apache-2.0
#include "call/warden/warden.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/sys.h"
#include "call/run/doctor.h"
#include "call/warden/protocol.h"
#include "call/warden/runner.h"
#include "call/warden/tenant_uids.h"
#include "call/warden/volumes.h"
#include "call/warden/wire.h"
#include "isolation/host_path.h"
#include "isolation/protected_paths.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

struct Runner {
  pid_t pid = -1;
  uint32_t uid_index = 0;  // no other runner has it
  UniqueFd pidfd;
};

// In the runner: one call, from bytes to a report.
[[noreturn]] void RunOne(const WardenRules& rules, ReceivedMessage& received, pid_t warden,
                         uint32_t uid_index) {
  std::vector<UniqueFd>& given = received.descriptors;
  if (!BecomeRunner(given[1].get(), given[2].get(), given[3].get(), warden)) {
    ::_exit(125);
  }
  const int report = given[4].get();
  for (size_t i = 1; i < 4; ++i) {
    given[i].Reset();
  }
  Result<std::string> bytes = ReadSealed(given[0].get(), received.message.size);
  Result<RunRequest> request =
      bytes.ok() ? DecodeRun(*bytes) : Result<RunRequest>(std::move(bytes.error()));
  Status allowed = request.ok() ? CheckRequest(rules, *request) : Status(request.error());
  if (allowed.ok()) {
    const Result<isolation::UidRange> uids = UidOfTenant(request->tenant, uid_index);
    allowed = uids.ok() ? Status() : Status(uids.error());
    request->uids = uids.ok() ? *uids : isolation::UidRange{};
  }
  if (!allowed.ok()) {
    SendReport(report, RefusalReport(allowed.error()));
    ::_exit(120);
  }
  given[0].Reset();
  RunAndReport(std::move(request).value(), report);
}

class Warden {
 public:
  Warden(int control, const WardenRules& rules) : control_(control), rules_(rules) {}

  // False once the gateway is gone.
  Result<bool> Serve() {
    std::vector<pollfd> waits = {{control_, POLLIN, 0}};
    std::vector<std::string> ids;
    for (const auto& [id, runner] : runners_) {
      waits.push_back({runner.pidfd.get(), POLLIN, 0});
      ids.push_back(id);
    }
    const long answer =
        Syscall(SYS_ppoll, Arg(waits.data()), static_cast<long>(waits.size()), 0, 0, 0);
    if (answer == -EINTR) {
      return true;
    }
    if (answer < 0) {
      return sys::ErrnoError("internal.warden", "cannot wait for work", answer);
    }
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents != 0) {
        Reap(ids[i - 1]);
      }
    }
    return waits[0].revents == 0 ? Result<bool>(true) : Listen();
  }

  void EndAll() {
    for (const auto& [id, runner] : runners_) {
      (void)Syscall(SYS_pidfd_send_signal, runner.pidfd.get(), SIGKILL, 0, 0);
    }
    while (!runners_.empty()) {
      Reap(runners_.begin()->first);
    }
  }

 private:
  Result<bool> Listen() {
    Result<ReceivedMessage> received = ReceiveMessage(control_);
    if (!received.ok()) {
      // Whoever sends nonsense here is broken or broken into.
      return std::move(received.error());
    }
    if (received->ended) {
      return false;
    }
    const std::string id = received->message.call_id;
    if (received->message.verb == static_cast<uint32_t>(WardenVerb::kKill)) {
      Kill(id);
    } else if (IsVolumeVerb(received->message.verb)) {
      StartVolume("volume " + id, *received);
    } else {
      Launch(id, *received);
    }
    return true;
  }

  void Launch(const std::string& id, ReceivedMessage& received) {
    const int report = received.descriptors[4].get();
    if (runners_.contains(id)) {
      SendReport(report, RefusalReport(Internal("internal.warden", "this call runs already")));
      return;
    }
    if (runners_.size() >= rules_.max_running) {
      SendReport(report,
                 RefusalReport(Refused("limit.concurrency", "too many calls run on this host",
                                       "try again when one has ended")));
      return;
    }
    const pid_t warden = ::getpid();
    const uint32_t uid_index = FreeUidIndex();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(control_);
      runners_.clear();
      RunOne(rules_, received, warden, uid_index);
    }
    const long pidfd = pid < 0 ? -EAGAIN : Syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
      if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
      SendReport(report,
                 RefusalReport(HostFault("isolation.host", "the host cannot start another process",
                                         "wait until calls have ended, or raise its limits")));
      return;
    }
    runners_[id] = {pid, uid_index, UniqueFd(static_cast<int>(pidfd))};
  }

  // Making a file system takes longer than a warden may be away: a process of its own does it, and answers.
  void StartVolume(const std::string& id, ReceivedMessage& received) {
    if (runners_.contains(id) || runners_.size() >= rules_.max_running) {
      return;  // the end of the pipe is the answer
    }
    const uint32_t uid_index = FreeUidIndex();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(control_);
      runners_.clear();
      ServeVolume(rules_.sessions, received.message, received.descriptors[0].get());
    }
    const long pidfd = pid < 0 ? -EAGAIN : Syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0) {
      runners_[id] = {pid, uid_index, UniqueFd(static_cast<int>(pidfd))};
    } else if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  // Round and round, so that a uid rests before it is used again. There are more of them than runners.
  uint32_t FreeUidIndex() {
    const auto used = [&](uint32_t index) {
      return std::any_of(runners_.begin(), runners_.end(),
                         [&](const auto& one) { return one.second.uid_index == index; });
    };
    do {
      next_uid_index_ = (next_uid_index_ + 1) % kWardenUids;
    } while (used(next_uid_index_));
    return next_uid_index_;
  }

  void Kill(const std::string& id) {
    if (const auto found = runners_.find(id); found != runners_.end()) {
      // The supervisor asks the command to end for the first, and kills it for the second.
      for (const int signal : {SIGTERM, SIGINT}) {
        (void)Syscall(SYS_pidfd_send_signal, found->second.pidfd.get(), signal, 0, 0);
      }
    }
  }

  void Reap(const std::string& id) {
    const auto found = runners_.find(id);
    long answer = 0;
    do {
      answer = Syscall(SYS_waitid, P_PIDFD, found->second.pidfd.get(), 0, WEXITED, 0);
    } while (answer == -EINTR);
    runners_.erase(found);
  }

  const int control_;
  const WardenRules& rules_;
  std::map<std::string, Runner> runners_;
  uint32_t next_uid_index_ = 0;
};

// One directory right below the one of sessions.
bool IsWorkspace(const std::string& sessions, const std::string& path) {
  if (sessions.empty() || !path.starts_with(sessions + "/")) {
    return false;
  }
  const std::string_view name = std::string_view(path).substr(sessions.size() + 1);
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

// Opened here only to look; the runner opens it again in the same way, and mounts what it opened.
Status CheckMount(const WardenRules& rules, const policy::Mount& mount) {
  TRY_ASSIGN(const isolation::HostPath opened,
             isolation::OpenHostPath(
                 mount.host, mount.access,
                 mount.dangerous ? isolation::Breadth::kAny : isolation::Breadth::kNarrow));
  std::vector<std::string> own = rules.closed;
  if (!rules.sessions.empty()) {
    own.push_back(rules.sessions.substr(0, rules.sessions.rfind('/')));
    own.push_back(rules.sessions);
  }
  if (mount.access == policy::Access::kWrite) {
    own.insert(own.end(), rules.relied.begin(), rules.relied.end());
  }
  return isolation::CheckShowsNone(opened, own);
}

}  // namespace

Status CheckRequest(const WardenRules& rules, const RunRequest& request) {
  const policy::Envelope& envelope = request.envelope;
  if (!envelope.workspace.empty() && !IsWorkspace(rules.sessions, envelope.workspace)) {
    return Refused("policy.workspace", "the workspace is not a session's");
  }
  for (const policy::Mount& mount : envelope.mounts) {
    if (mount.dangerous && !rules.allow_broad) {
      return Refused("policy.path.broad", "the daemon was started without --allow-dangerous",
                     "narrow the mount, or start the daemon with it");
    }
    TRY(CheckMount(rules, mount));
  }
  if (envelope.tty || !request.out_dir.empty() || request.script || !envelope.inputs.empty() ||
      !envelope.imported_seccomp.empty()) {
    return Refused("policy.request",
                   "a declared tool has no terminal, no --out, no script, no input and no imported "
                   "profile");
  }
  return {};
}

Status RunWarden(int control, const WardenRules& rules) {
  // What a killed daemon left, also where somebody else's sweep has taken away only a part of it. Nothing of ours runs yet.
  (void)SweepAll();
  Warden warden(control, rules);
  for (;;) {
    Result<bool> more = warden.Serve();
    if (!more.ok() || !*more) {
      warden.EndAll();
      return more.ok() ? Status() : Status(std::move(more.error()));
    }
  }
}

}  // namespace coffer::call
