// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/sys.h"
#include "call/warden/protocol.h"
#include "daemon/call_egress_role.h"
#include "daemon/egress_role.h"
#include "daemon/gateway_role.h"
#include "daemon/gateway_wall.h"
#include "daemon/own_mounts.h"
#include "daemon/policy_keeper.h"
#include "daemon/prepare_state.h"
#include "daemon/role.h"
#include "daemon/role_end.h"

namespace coffer::daemon {
namespace {

using call::SocketPair;
using raw::Arg;
using raw::Syscall;

constexpr std::chrono::milliseconds kManifestLook{500};
constexpr std::chrono::milliseconds kOrderlyEnd{10'000};  // on a busy machine; else at once
constexpr std::chrono::milliseconds kWardenEnd{10'000};
constexpr Nanos kProxyPause = std::chrono::seconds(1);  // between two starts of that role

void Unblock() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<std::string> WardenWords(const Config& config) {
  std::vector<std::string> words = {"coffer", "warden", "--sessions", config.state + "/sessions"};
  const auto add = [&](const char* flag, const std::string& path) {
    if (!path.empty()) {
      words.insert(words.end(), {flag, path});
    }
  };
  add("--closed", config.tls_key);
  for (const std::string& directory : config.tools) {
    add("--relied", directory);
  }
  for (const std::string& directory : config.toolchains) {
    add("--relied", directory);
  }
  for (const std::string& path :
       {config.default_tools, config.file, config.jwks, config.tls_certificate, config.socket}) {
    add("--relied", path);
  }
  if (config.allow_dangerous) {
    words.emplace_back("--allow-dangerous");
  }
  return words;
}

[[noreturn]] void BecomeWarden(const Config& config, int from_gateway, int from_monitor, int door) {
  if (!KeepDescriptors({from_gateway, from_monitor, door}) || !EnterRole(RoleKind::kWarden).ok()) {
    ::_exit(kExitFailed);
  }
  Unblock();
  std::vector<std::string> words = WardenWords(config);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::array<char*, 1> environment = {nullptr};
  Syscall(SYS_execve, Arg(config.warden.c_str()), Arg(argv.data()), Arg(environment.data()));
  ::_exit(kExitFailed);
}

// The egress role reads its configuration and secrets itself, before it gives up the right to: no other role has them.
[[noreturn]] void BecomeEgress(const Config& config, int control) {
  if (!KeepDescriptors({control})) {
    ::_exit(kExitFailed);
  }
  Unblock();
  RunEgress(config, kFirstKept);
}

// The role that dials for calls. It knows no configuration: what a call may reach comes with the call.
[[noreturn]] void BecomeCallEgress(int door) {
  if (!KeepDescriptors({door})) {
    ::_exit(kExitFailed);
  }
  Unblock();
  RunCallEgress(kFirstKept);
}

pid_t Start(const auto& become) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // A group of its own: the terminal's Ctrl-C is for the monitor, which ends the roles in order.
    if (!DieWith(parent) || ::setpgid(0, 0) != 0) {
      ::_exit(kExitFailed);
    }
    become();
    ::_exit(kExitFailed);
  }
  return pid;
}

const Error* ErrorOf(const auto& result) { return result.ok() ? nullptr : &result.error(); }

// The one role that may die alone: it parses what payloads and strangers send. Its door stays open here, so that the
// warden's end leads to the next one; calls that the dead one had end with an error of their own.
class ProxyKeeper {
 public:
  explicit ProxyKeeper(UniqueFd door) : door_(std::move(door)) {}
  ProxyKeeper(const ProxyKeeper&) = delete;
  ProxyKeeper& operator=(const ProxyKeeper&) = delete;

  // Starts it if it does not run and did not start just now.
  void Keep() {
    if (pid_ < 0 && (started_ == Nanos(0) || BootTime() - started_ >= kProxyPause)) {
      started_ = BootTime();
      wanted_ = false;
      pid_ = Start([this] { BecomeCallEgress(door_.get()); });
    }
  }
  // The next one reads what this host trusts again. This one takes no more calls, and ends when its
  // last one has. With too many of those, the replacement waits until one of them has ended.
  void Replace() {
    if (pid_ > 0 && retired_.size() >= kMostRetired) {
      if (!std::exchange(wanted_, true)) {
        PrintError(
            fmt::format("coffer: {} earlier egress roles still have calls; the certificates of "
                        "this host are read again when one of them has ended",
                        kMostRetired));
      }
      return;
    }
    if (pid_ > 0 && ::kill(pid_, SIGHUP) == 0) {
      retired_.insert(std::exchange(pid_, -1));
      started_ = Nanos(0);
    }
  }
  enum class Ended : uint8_t { kOther, kProxy, kRetired };
  // Which of them that was.
  Ended Forget(pid_t ended) {
    if (retired_.erase(ended) > 0) {
      if (std::exchange(wanted_, false)) {
        Replace();
      }
      return Ended::kRetired;
    }
    const bool own = ended == pid_;
    pid_ = own ? -1 : pid_;
    return own ? Ended::kProxy : Ended::kOther;
  }
  void End() {
    for (const pid_t old : std::exchange(retired_, {})) {
      ::kill(old, SIGKILL);
      ::waitpid(old, nullptr, 0);
    }
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
  }

 private:
  static constexpr size_t kMostRetired = 4;
  const UniqueFd door_;
  pid_t pid_ = -1;
  std::set<pid_t> retired_;
  Nanos started_{0};
  bool wanted_ = false;  // a replacement that waits
};

struct Roles {
  pid_t gateway = -1, warden = -1, egress = -1;
  ProxyKeeper& proxy;
  GatewayWall& wall;
  bool Has(pid_t pid) const { return pid == gateway || pid == warden || pid == egress; }
};

// Calls have three descriptors each, clients one: what the host allows is ours, and no default of a shell bounds it.
void RaiseDescriptors() {
  rlimit limit{};
  if (Syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, Arg(&limit)) >= 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)Syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, Arg(&limit), 0);
  }
}

[[noreturn]] void BecomeGateway(const Config& config, int warden, int egress, int monitor,
                                int wall) {
  // Above all not the monitor's end to the warden: tables come from there.
  if (!(wall >= 0 ? KeepDescriptors({warden, egress, monitor, wall})
                  : KeepDescriptors({warden, egress, monitor}))) {
    ::_exit(kExitFailed);
  }
  Unblock();
  ::_exit(
      RunGateway(config, {UniqueFd(kFirstKept), UniqueFd(kFirstKept + 1), UniqueFd(kFirstKept + 2),
                          wall >= 0 ? UniqueFd(kFirstKept + 3) : UniqueFd()}));
}

// The first role that ended takes the others along. No role is left when it returns.
int EndAll(const Roles& roles, pid_t ended, int how) {
  // Warden and egress end by themselves, well, when the gateway's sockets are closed, which is a
  // moment before the gateway can be waited for. Whatever else ends first was killed or is broken:
  // then nothing goes on.
  std::optional<int> gateway;
  if (ended == roles.gateway) {
    gateway = how;
  } else if (WIFEXITED(how) && WEXITSTATUS(how) == 0) {
    gateway = WaitForRoleEnd(roles.gateway, kOrderlyEnd);
  }
  const bool orderly = gateway && WIFEXITED(*gateway);
  if (gateway && WIFSIGNALED(*gateway) && roles.wall.WasHit()) {
    PrintError(
        fmt::format("coffer: limit.memory: the kernel ended the gateway for want of memory (its "
                    "limit is {} MiB); everything ends",
                    roles.wall.limit() >> 20));
  } else if (!orderly) {
    PrintError("coffer: internal: a role of the daemon ended unexpectedly; everything ends");
  }
  if (!gateway) {
    ::kill(roles.gateway, SIGKILL);
    ::waitpid(roles.gateway, nullptr, 0);
  }
  roles.proxy.End();
  if (ended != roles.egress) {
    ::kill(roles.egress, SIGKILL);
    ::waitpid(roles.egress, nullptr, 0);
  }
  // The warden ends its calls now that the gateway is gone; it gets the time for that.
  if (ended != roles.warden && !WaitForRoleEnd(roles.warden, kWardenEnd)) {
    ::kill(roles.warden, SIGKILL);
    ::waitpid(roles.warden, nullptr, 0);
  }
  return orderly ? WEXITSTATUS(*gateway) : kExitFailed;
}

int Wait(const Roles& roles, int signals, PolicyKeeper& policy, const PolicySockets& sockets) {
  for (;;) {
    roles.proxy.Keep();
    pollfd asked{signals, POLLIN, 0};
    if (::poll(&asked, 1, static_cast<int>(kManifestLook.count())) == 0) {
      policy.ReloadIfChanged(sockets);
      continue;
    }
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
      continue;
    }
    if (info.ssi_signo == SIGHUP) {
      policy.Reload(sockets);
      roles.proxy.Replace();
      continue;
    }
    if (info.ssi_signo != SIGCHLD) {
      ::kill(roles.gateway, SIGTERM);
      continue;
    }
    int how = 0;
    // Signals of one kind are merged while one waits, so one SIGCHLD can stand for several roles.
    while (const pid_t ended = ::waitpid(-1, &how, WNOHANG)) {
      if (ended < 0) {
        break;
      }
      const ProxyKeeper::Ended which = roles.proxy.Forget(ended);
      if (which == ProxyKeeper::Ended::kOther && roles.Has(ended)) {
        return EndAll(roles, ended, how);
      }
      // Any other is an orphan: as the first process of a container the monitor gets what killed runners leave.
      if (which == ProxyKeeper::Ended::kProxy) {
        PrintError("coffer: internal: the egress role of calls ended; it is started again");
      }
    }
  }
}

}  // namespace

int RunMonitor(const Config& config) {
  PolicyKeeper policy(config);
  Status prepared = PrepareState(config);
  if (prepared.ok()) {
    prepared = EnterOwnMounts();
  }
  const Status compiled = prepared.ok() ? policy.Compile() : Status();
  Result<SocketPair> launches = call::MakeSocketPair(SOCK_SEQPACKET);  // warden, gateway
  Result<SocketPair> tables = call::MakeSocketPair(SOCK_SEQPACKET);    // warden, monitor
  Result<SocketPair> to_egress = call::MakeSocketPair(SOCK_SEQPACKET);
  Result<SocketPair> to_gateway = call::MakeSocketPair(SOCK_SEQPACKET);
  Result<SocketPair> door = call::MakeSocketPair(SOCK_SEQPACKET);  // egress of calls, warden
  const Status handed =
      compiled.ok() && tables.ok() ? policy.HandOver(tables->second.get()) : Status();
  for (const Error* error :
       {ErrorOf(prepared), ErrorOf(compiled), ErrorOf(launches), ErrorOf(tables),
        ErrorOf(to_egress), ErrorOf(to_gateway), ErrorOf(door), ErrorOf(handed)}) {
    if (error != nullptr) {
      PrintError(*error);
      return error->kind == ErrorKind::kRefused ? kExitRefused : kExitFailed;
    }
  }
  RaiseDescriptors();
  GatewayWall wall = GatewayWall::Make(config.state);
  if (::geteuid() == 0 && !wall.why_not().empty()) {
    PrintError(
        "coffer: note: no cgroup limits the gateway's memory, its own counting alone does: " +
        wall.why_not());
  }
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    sigaddset(&watched, signal);
  }
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  // Blocked before the first role is started: a role that ends at once is then still seen.
  const UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC));
  ProxyKeeper proxy(std::move(door->first));
  Roles roles{.proxy = proxy, .wall = wall};
  roles.warden = Start([&] {
    BecomeWarden(config, launches->first.get(), tables->first.get(), door->second.get());
  });
  roles.egress = Start([&] { BecomeEgress(config, to_egress->first.get()); });
  roles.gateway = Start([&] {
    BecomeGateway(config, launches->second.get(), to_egress->second.get(), to_gateway->second.get(),
                  wall.entrance());
  });
  // Only the roles may hold these ends: an end of file is how each of them hears that the other is
  // gone.
  launches = SocketPair{};
  tables->first.Reset();
  to_egress = SocketPair{};
  to_gateway->second.Reset();
  door->second.Reset();
  wall.CloseEntrance();
  if (roles.warden < 0 || roles.egress < 0 || roles.gateway < 0) {
    PrintError(HostFault("daemon.fork", "the host cannot start the roles of the daemon"));
    return kExitFailed;  // those that started die with us
  }
  return Wait(roles, signals.get(), policy, {tables->second.get(), to_gateway->first.get()});
}

}  // namespace coffer::daemon
