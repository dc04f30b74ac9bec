// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>

#include "base/print.h"
#include "base/sys.h"
#include "daemon/egress_role.h"
#include "daemon/gateway_role.h"
#include "daemon/operator_files.h"
#include "daemon/role.h"
#include "store/state_part.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kFailed = 125;
constexpr int kControl = 3;
constexpr std::chrono::milliseconds kOrderlyEnd{1'000};
constexpr std::chrono::milliseconds kWardenEnd{10'000};

struct SocketPair {
  UniqueFd first, second;
};

Result<SocketPair> MakeSocketPair() {
  int ends[2] = {-1, -1};
  const long made = Syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, Arg(ends));
  if (made < 0) {
    return sys::ErrnoError("daemon.socketpair", "cannot make a socket between the roles", made);
  }
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The gateway has a uid of its own: every directory above its state must let strangers pass.
Status CheckReachable(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = path.substr(0, at);
    struct stat info{};
    if (::stat(parent.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0 &&
        info.st_uid != kGatewayUid) {
      return Refused("daemon.state",
                     parent + " is closed to others, so the daemon's gateway cannot reach " + path,
                     "choose another --state, or: chmod o+x " + parent);
    }
  }
  return {};
}

// Makes the gateway the owner of `name` below `dir` (of `dir` itself, if it is empty), never of what a link leads to.
Status Give(int dir, const std::string& name) {
  const long given = Syscall(SYS_fchownat, dir, Arg(name.c_str()), kGatewayUid, kGatewayUid,
                             AT_SYMLINK_NOFOLLOW | (name.empty() ? AT_EMPTY_PATH : 0));
  return given < 0 ? Status(sys::ErrnoError(
                         "daemon.state", "cannot give the state directory to the gateway", given))
                   : Status();
}

// The directories on the way, for us alone; the last one, and what is in it, for the gateway: `coffer key new` and the
// like may have made it as root.
Status PrepareState(const Config& config) {
  for (const char* part : {"sessions", "log", "coffer.db", "owners"}) {
    TRY(store::CheckStatePart(config.state, part));
  }
  TRY(sys::MakeDirs(config.state + "/sessions", 0700));
  if (::geteuid() != 0) {
    return {};
  }
  TRY(CheckReachable(config.state));
  TRY_ASSIGN(const UniqueFd dir, sys::OpenNoLinks(AT_FDCWD, config.state, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir.get()));
  TRY(Give(dir.get(), ""));
  for (const sys::DirEntry& entry : entries) {
    if (entry.name.starts_with("coffer.db") || entry.name == "owners" || entry.name == "sessions") {
      TRY(Give(dir.get(), entry.name));
    }
    if (entry.name == "log") {
      TRY_ASSIGN(const UniqueFd log, sys::OpenNoLinks(dir.get(), "log", O_RDONLY | O_DIRECTORY));
      TRY_ASSIGN(const std::vector<sys::DirEntry> files, sys::ListDir(log.get()));
      TRY(Give(log.get(), ""));
      for (const sys::DirEntry& file : files) {
        TRY(Give(log.get(), file.name));
      }
    }
  }
  return {};
}

void Unblock() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Puts the socket where the role expects it, and closes everything above.
bool KeepControl(int control) {
  const long kept = control == kControl ? Syscall(SYS_fcntl, control, F_SETFD, 0)
                                        : Syscall(SYS_dup3, control, kControl, 0);
  return kept >= 0 && Syscall(SYS_close_range, kControl + 1, ~0U, 0) >= 0;
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
  for (const std::string& path :
       {config.default_tools, config.file, config.jwks, config.tls_certificate, config.socket}) {
    add("--relied", path);
  }
  if (config.allow_dangerous) {
    words.emplace_back("--allow-dangerous");
  }
  return words;
}

[[noreturn]] void BecomeWarden(const Config& config, int control) {
  if (!KeepControl(control) || !EnterRole(RoleKind::kWarden).ok()) {
    ::_exit(kFailed);
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
  ::_exit(kFailed);
}

// Whatever it needs, also its secrets, it reads itself before it gives up the right to: nobody else ever has them.
[[noreturn]] void BecomeEgress(const Config& config, int control) {
  if (!KeepControl(control)) {
    ::_exit(kFailed);
  }
  Unblock();
  RunEgress(config, kControl);
}

pid_t Start(const auto& become) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // A group of its own: the terminal's Ctrl-C is for the monitor, which ends the roles in order.
    if (!DieWith(parent) || ::setpgid(0, 0) != 0) {
      ::_exit(kFailed);
    }
    become();
    ::_exit(kFailed);
  }
  return pid;
}

const Error* ErrorOf(const auto& result) { return result.ok() ? nullptr : &result.error(); }

struct Roles {
  pid_t gateway = -1, warden = -1, egress = -1;
};

// Calls have three descriptors each, clients one: what the host allows is ours, and no default of a shell bounds it.
void RaiseDescriptors() {
  rlimit limit{};
  if (Syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, Arg(&limit)) >= 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)Syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, Arg(&limit), 0);
  }
}

// Its wait status, or nothing if it still runs after that time.
std::optional<int> WaitFor(pid_t role, std::chrono::milliseconds time) {
  const UniqueFd pidfd(static_cast<int>(Syscall(SYS_pidfd_open, role, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  int status = 0;
  (void)::poll(&ended, 1, static_cast<int>(time.count()));
  return ::waitpid(role, &status, WNOHANG) == role ? std::optional(status) : std::nullopt;
}

// The first role that ended takes the others along. Nobody is left when it returns.
int EndAll(const Roles& roles, pid_t ended, int how) {
  // Warden and egress end by themselves, well, when the gateway's sockets are closed, which is a moment before the gateway
  // can be waited for. Whatever else ends first was killed or is broken: then nothing goes on.
  std::optional<int> gateway;
  if (ended == roles.gateway) {
    gateway = how;
  } else if (WIFEXITED(how) && WEXITSTATUS(how) == 0) {
    gateway = WaitFor(roles.gateway, kOrderlyEnd);
  }
  const bool orderly = gateway && WIFEXITED(*gateway);
  if (!orderly) {
    PrintError("coffer: internal: a role of the daemon ended unexpectedly; everything ends");
  }
  if (!gateway) {
    ::kill(roles.gateway, SIGKILL);
    ::waitpid(roles.gateway, nullptr, 0);
  }
  if (ended != roles.egress) {
    ::kill(roles.egress, SIGKILL);
    ::waitpid(roles.egress, nullptr, 0);
  }
  // The warden ends its calls now that nobody is at the other end; it gets the time for that.
  if (ended != roles.warden && !WaitFor(roles.warden, kWardenEnd)) {
    ::kill(roles.warden, SIGKILL);
    ::waitpid(roles.warden, nullptr, 0);
  }
  return orderly ? WEXITSTATUS(*gateway) : kFailed;
}

int Wait(const Config& config, const Roles& roles, int signals, int to_gateway) {
  for (;;) {
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
      continue;
    }
    if (info.ssi_signo == SIGHUP) {
      SendOperatorFiles(config, to_gateway);
      continue;
    }
    if (info.ssi_signo != SIGCHLD) {
      ::kill(roles.gateway, SIGTERM);
      continue;
    }
    int how = 0;
    if (const pid_t ended = ::waitpid(-1, &how, WNOHANG); ended > 0) {
      return EndAll(roles, ended, how);
    }
  }
}

}  // namespace

int RunMonitor(const Config& config) {
  Status prepared = PrepareState(config);
  Result<SocketPair> to_warden = MakeSocketPair();
  Result<SocketPair> to_egress = MakeSocketPair();
  Result<SocketPair> to_gateway = MakeSocketPair();
  for (const Error* error :
       {ErrorOf(prepared), ErrorOf(to_warden), ErrorOf(to_egress), ErrorOf(to_gateway)}) {
    if (error != nullptr) {
      PrintError(*error);
      return error->kind == ErrorKind::kRefused ? 120 : kFailed;
    }
  }
  RaiseDescriptors();
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    sigaddset(&watched, signal);
  }
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  const UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC));
  Roles roles;
  roles.warden = Start([&] { BecomeWarden(config, to_warden->first.get()); });
  roles.egress = Start([&] { BecomeEgress(config, to_egress->first.get()); });
  roles.gateway = Start([&] {
    to_warden->first.Reset();
    to_egress->first.Reset();
    to_gateway->first.Reset();
    Unblock();
    ::_exit(RunGateway(config, {std::move(to_warden->second), std::move(to_egress->second),
                                std::move(to_gateway->second)}));
  });
  to_warden = SocketPair{};
  to_egress = SocketPair{};
  to_gateway->second.Reset();
  if (roles.warden < 0 || roles.egress < 0 || roles.gateway < 0) {
    PrintError(HostFault("daemon.fork", "the host cannot start the roles of the daemon"));
    return kFailed;  // those that started die with us
  }
  return Wait(config, roles, signals.get(), to_gateway->first.get());
}

}  // namespace coffer::daemon
