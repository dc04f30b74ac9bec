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
#include <memory>
#include <utility>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/sys.h"
#include "call/run/doctor.h"
#include "call/run/tools_server.h"
#include "call/warden/grant_network.h"
#include "call/warden/protocol.h"
#include "call/warden/runner.h"
#include "call/warden/tenant_uids.h"
#include "call/warden/volumes.h"
#include "call/warden/wire.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

struct Runner {
  pid_t pid = -1;
  uint32_t uid_index = 0;  // no other runner has it
  UniqueFd pidfd;
  std::string parent =
      {};  // the call that makes this one through the socket of its tools; empty: none
  // Of a call that calls tools: what it was launched with, for the runners of the calls that it makes. Sealed.
  UniqueFd request = {};
  uint64_t size = 0;
};

// In a runner: what it gets beside the request.
struct RunnerPlace {
  pid_t warden = -1;
  uint32_t uid_index = 0;
  int door = -1;
  bool has_parent = false;
  UniqueFd parent = {};  // the request of the call that makes this one
  uint64_t parent_size = 0;
};

// In the runner: what the manifest fixes comes from the table. The gateway's descriptor could be
// another text, and could be moved while it is read.
Status TakeFixedStdin(const TableEntry& entry) {
  const std::optional<std::string> text = entry.FixedStdin();
  if (!text) {
    return {};
  }
  TRY_ASSIGN(const UniqueFd fixed, SealedBytes(*text));
  const long taken = Syscall(SYS_dup3, fixed.get(), STDIN_FILENO, 0);
  return taken < 0 ? Status(sys::ErrnoError("internal.warden", "cannot take a descriptor", taken))
                   : Status();
}

// In the runner: what the gateway asked for, if a manifest allows it.
Result<RunRequest> ReadRequest(const WardenRules& rules, const WardenTable& table,
                               const ReceivedMessage& received, const RunnerPlace& place) {
  TRY_ASSIGN(const std::string bytes,
             ReadSealed(received.descriptors[0].get(), received.message.size));
  TRY_ASSIGN(RunRequest request, DecodeRun(bytes));
  for (size_t i = kLaunchDescriptors; i < received.descriptors.size(); ++i) {
    request.port_channels.push_back(received.descriptors[i].get());
  }
  if (HasToolsChannel(received.descriptors)) {
    request.tools_channel = request.port_channels.back();
    request.port_channels.pop_back();
  }
  TRY(CheckRequest(rules, table, request));
  if ((request.tools_channel >= 0) == request.tools.empty()) {
    return Refused("policy.entry.calls", "a call has a socket for its tools if it calls some");
  }
  if (place.has_parent) {
    // Checked when that call was launched; its runner is alive as long as the warden knows it.
    TRY_ASSIGN(const std::string made, ReadSealed(place.parent.get(), place.parent_size));
    TRY_ASSIGN(const RunRequest parent, DecodeRun(made));
    TRY(CheckChild(table, parent, request));
  }
  TRY(TakeFixedStdin(*table.Find(request.entry)));
  TRY(GrantNetwork(table, request));
  request.egress.hold_seconds = table.egress.hold_seconds;  // here operators can be asked
  TRY_ASSIGN(request.uids, UidOfTenant(request.tenant, place.uid_index));
  // From here on by our own word, never by the gateway's.
  request.runtimes_only = true;
  request.shares_cycles = true;
  request.egress_door = place.door;
  request.state = rules.sessions.substr(0, rules.sessions.rfind('/'));
  return request;
}

// In the runner: one call, from bytes to a report.
[[noreturn]] void RunOne(const WardenRules& rules, const WardenTable& table,
                         const MakeToolsServer& make_tools, ReceivedMessage& received,
                         const RunnerPlace& place) {
  std::vector<UniqueFd>& given = received.descriptors;
  if (!BecomeRunner(given[1].get(), given[2].get(), given[3].get(), place.warden)) {
    ::_exit(kExitFailed);
  }
  const int report = given[4].get();
  for (size_t i = 1; i < 4; ++i) {
    given[i].Reset();
  }
  Result<RunRequest> request = ReadRequest(rules, table, received, place);
  given[0].Reset();
  if (!request.ok()) {
    SendReport(report, RefusalReport(request.error()), Patience::kSome);
    ::_exit(kExitRefused);
  }
  // A call without network has no use for the way to the egress role.
  if (request->egress.empty()) {
    ::close(place.door);
  }
  std::unique_ptr<ToolsServer> tools;
  RunRequest asked;  // for `tools`; RunAndReport takes the other and does not return
  if (!request->tools.empty()) {
    request->tools_channel = given.back().Release();  // the server's from here on
    asked = *request;
    tools = make_tools(asked, received.message.call_id);
    request->tools_server = tools.get();
  }
  RunAndReport(std::move(request).value(), report);
}

class Warden {
 public:
  Warden(const WardenSockets& sockets, const WardenRules& rules, const MakeToolsServer& make_tools)
      : sockets_(sockets), rules_(rules), make_tools_(make_tools) {}

  // False once the gateway or the monitor is gone.
  Result<bool> Serve() {
    std::vector<pollfd> waits = {{sockets_.gateway, POLLIN, 0}, {sockets_.monitor, POLLIN, 0}};
    const size_t first_runner = waits.size();
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
    for (size_t i = first_runner; i < waits.size(); ++i) {
      if (waits[i].revents != 0) {
        Reap(runners_.find(ids[i - first_runner]));
      }
    }
    // Tables first: the monitor sends one before the gateway hears of the same reload. So they are looked for once more
    // when a request has come.
    TRY_ASSIGN(const bool monitored, TakeTables());
    return !monitored || waits[0].revents == 0 ? Result<bool>(monitored) : Listen();
  }

  void EndAll() {
    for (const auto& [id, runner] : runners_) {
      (void)Syscall(SYS_pidfd_send_signal, runner.pidfd.get(), SIGKILL, 0, 0);
    }
    while (!runners_.empty()) {
      Reap(runners_.begin());
    }
  }

 private:
  // All tables that wait; the last one counts. False once the monitor is gone.
  Result<bool> TakeTables() {
    for (;;) {
      TRY_ASSIGN(const ReceivedMessage received,
                 ReceiveMessage(sockets_.monitor, WardenPeer::kMonitor));
      if (received.empty || received.ended) {
        return !received.ended;
      }
      const Result<std::string> bytes =
          ReadSealed(received.descriptors[0].get(), received.message.size);
      Result<WardenTable> table =
          bytes.ok() ? DecodeTable(*bytes) : Result<WardenTable>(bytes.error());
      if (table.ok()) {
        table_ = std::move(table).value();
      } else {
        Say(table.error());  // the previous table stays
      }
    }
  }

  // stderr may be a full pipe: a process of its own waits for its reader. One at a time.
  void Say(const Error& error) {
    const std::string id = "error of the warden";
    if (runners_.contains(id)) {
      return;
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      CloseOurEnds();
      PrintError(error);
      ::_exit(0);
    }
    Keep(id, pid);
  }

  Result<bool> Listen() {
    Result<ReceivedMessage> received = ReceiveMessage(sockets_.gateway, WardenPeer::kGateway);
    if (!received.ok()) {
      // A gateway that sends nonsense is broken, or was broken into.
      return std::move(received.error());
    }
    if (received->ended) {
      return false;
    }
    if (received->empty) {
      return true;
    }
    const std::string id = received->message.call_id;
    if (received->message.verb == static_cast<uint32_t>(WardenVerb::kKill)) {
      Kill(id);
    } else if (received->message.verb == static_cast<uint32_t>(WardenVerb::kSignal)) {
      Signal(id, received->message.size);
    } else if (IsVolumeVerb(received->message.verb)) {
      StartVolume("volume " + id, *received);
    } else {
      Launch(id, *received);
    }
    return true;
  }

  void Launch(const std::string& id, ReceivedMessage& received) {
    if (!AreLaunchDescriptors(received.descriptors)) {
      return;  // there is nothing that can be answered to
    }
    const auto refuse = [&](const Error& error) {
      SendReport(received.descriptors[4].get(), RefusalReport(error), Patience::kNone);
    };
    if (runners_.contains(id)) {
      return refuse(Internal("internal.warden", "this call runs already"));
    }
    if (runners_.size() >= rules_.max_running) {
      return refuse(Refused("limit.concurrency", "too many calls run on this host",
                            "try again when one has ended"));
    }
    const std::string parent_id = received.message.parent_id;
    const auto parent = runners_.find(parent_id);
    if (!parent_id.empty() && (parent == runners_.end() || !parent->second.request)) {
      return refuse(Refused("policy.parent", "the call that makes this one has ended"));
    }
    RunnerPlace place{::getpid(), FreeUidIndex(), sockets_.egress, !parent_id.empty()};
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(sockets_.gateway);
      ::close(sockets_.monitor);
      if (place.has_parent) {
        place.parent = std::move(parent->second.request);
        place.parent_size = parent->second.size;
      }
      runners_.clear();
      RunOne(rules_, table_, make_tools_, received, place);
    }
    const long pidfd = pid < 0 ? -EAGAIN : Syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
      if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
      return refuse(HostFault("isolation.host", "the host cannot start another process",
                              "wait until calls have ended, or raise its limits"));
    }
    Runner& runner = runners_[id] = {pid, place.uid_index, UniqueFd(static_cast<int>(pidfd))};
    runner.parent = parent_id;
    if (HasToolsChannel(received.descriptors)) {
      runner.request = std::move(received.descriptors[0]);
      runner.size = received.message.size;
    }
  }

  // Making a file system takes longer than a warden may be away: a process of its own does it, and answers.
  void StartVolume(const std::string& id, ReceivedMessage& received) {
    if (!AreVolumeDescriptors(received.descriptors) || runners_.contains(id) ||
        runners_.size() >= rules_.max_running) {
      return;  // the end of the socket is the answer
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      CloseOurEnds();
      ServeVolume(rules_.sessions, received.message, received.descriptors[0].get());
    }
    Keep(id, pid);
  }

  // In a child that is no runner of a call.
  void CloseOurEnds() {
    ::close(sockets_.gateway);
    ::close(sockets_.monitor);
    ::close(sockets_.egress);
    runners_.clear();
  }

  // A child that is no runner of a call is reaped, and ended with the warden, as a runner is.
  void Keep(const std::string& id, pid_t pid) {
    const long pidfd = pid < 0 ? -EAGAIN : Syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0) {
      runners_[id] = {pid, FreeUidIndex(), UniqueFd(static_cast<int>(pidfd))};
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

  // Only what a supervisor passes on to its command. SIGKILL and SIGSTOP would hit the supervisor itself.
  void Signal(const std::string& id, uint64_t signal) {
    const auto found = runners_.find(id);
    constexpr uint64_t kPassedOn[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    if (found != runners_.end() &&
        std::find(std::begin(kPassedOn), std::end(kPassedOn), signal) != std::end(kPassedOn)) {
      (void)Syscall(SYS_pidfd_send_signal, found->second.pidfd.get(), static_cast<int>(signal), 0,
                    0);
    }
  }

  void Reap(std::map<std::string, Runner>::iterator which) {
    const auto ended = runners_.extract(which);
    long answer = 0;
    do {
      answer = Syscall(SYS_waitid, P_PIDFD, ended.mapped().pidfd.get(), 0, WEXITED, 0);
    } while (answer == -EINTR);
    // The calls that it made end with it, whatever the gateway says; their reports still come.
    for (const auto& [other, runner] : runners_) {
      if (runner.parent == ended.key()) {
        Kill(other);
      }
    }
  }

  const WardenSockets sockets_;
  const WardenRules& rules_;
  const MakeToolsServer& make_tools_;
  WardenTable table_;  // empty until the monitor has sent one: nothing is allowed
  std::map<std::string, Runner> runners_;
  uint32_t next_uid_index_ = 0;
};

}  // namespace

Status RunWarden(const WardenSockets& sockets, const WardenRules& rules,
                 const MakeToolsServer& make_tools) {
  // What a killed daemon left, also where another sweep has taken away only a part of it. Nothing of ours runs yet.
  (void)SweepAll();
  Warden warden(sockets, rules, make_tools);
  for (;;) {
    Result<bool> more = warden.Serve();
    if (!more.ok() || !*more) {
      warden.EndAll();
      return more.ok() ? Status() : Status(std::move(more.error()));
    }
  }
}

}  // namespace coffer::call
