// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/print.h"
#include "base/sys.h"
#include "daemon/gateway_role.h"
#include "daemon/role.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kFailed = 125;
constexpr int kControl = 3;

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

// The directories on the way, for us alone; the last one, and what is in it, for the gateway.
Status PrepareState(const Config& config) {
  for (const std::string& path : {config.state, config.state + "/sessions"}) {
    for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
      const Status made = sys::MakeDirAt(AT_FDCWD, path.substr(0, at), 0700);
      if (!made.ok() && made.error().sys_errno != EEXIST) {
        return made;
      }
      if (at == std::string::npos) {
        break;
      }
    }
  }
  if (::geteuid() != 0) {
    return {};
  }
  TRY(CheckReachable(config.state));
  TRY_ASSIGN(const UniqueFd dir, sys::OpenNoLinks(AT_FDCWD, config.state, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir.get()));
  std::vector<std::string> names = {""};
  for (const sys::DirEntry& entry : entries) {
    if (entry.name.starts_with("coffer.db") || entry.name == "owners" || entry.name == "sessions") {
      names.push_back(entry.name);
    }
  }
  for (const std::string& name : names) {
    const long given = Syscall(SYS_fchownat, dir.get(), Arg(name.c_str()), kGatewayUid, kGatewayUid,
                               AT_SYMLINK_NOFOLLOW | (name.empty() ? AT_EMPTY_PATH : 0));
    if (given < 0) {
      return sys::ErrnoError("daemon.state", "cannot give the state directory to the gateway",
                             given);
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

[[noreturn]] void BecomeWarden(const Config& config, int control) {
  if (!KeepControl(control) || !EnterRole(RoleKind::kWarden).ok()) {
    ::_exit(kFailed);
  }
  Unblock();
  std::string name = "coffer";
  std::string verb = "warden";
  std::string flag = "--sessions";
  std::string sessions = config.state + "/sessions";
  std::string dangerous = "--allow-dangerous";
  const std::array<char*, 6> argv = {name.data(),
                                     verb.data(),
                                     flag.data(),
                                     sessions.data(),
                                     config.allow_dangerous ? dangerous.data() : nullptr,
                                     nullptr};
  std::array<char*, 1> environment = {nullptr};
  Syscall(SYS_execve, Arg(config.warden.c_str()), Arg(argv.data()), Arg(environment.data()));
  ::_exit(kFailed);
}

// Nothing to do yet: it holds its place, and its posture can be looked at.
[[noreturn]] void BecomeEgress(int control) {
  if (!KeepControl(control) || !EnterRole(RoleKind::kEgress).ok()) {
    ::_exit(kFailed);
  }
  Unblock();
  char word = 0;
  while (Syscall(SYS_read, kControl, Arg(&word), 1) == -EINTR) {
  }
  ::_exit(0);  // the gateway is gone
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

struct Roles {
  pid_t gateway = -1, warden = -1, egress = -1;
};

// Until the first role has ended; then nobody is left.
int Wait(const Roles& roles, int signals) {
  int status = kFailed;
  pid_t gone = -1;
  for (;;) {
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
      continue;
    }
    if (info.ssi_signo != SIGCHLD) {
      ::kill(roles.gateway, info.ssi_signo == SIGHUP ? SIGHUP : SIGTERM);
      continue;
    }
    int how = 0;
    pid_t ended = ::waitpid(roles.gateway, &how, WNOHANG);
    if (ended <= 0) {
      ended = ::waitpid(-1, &how, WNOHANG);
      // The others end when the gateway's sockets are closed, which is a moment before it can be waited for.
      for (int left = 100; ended > 0 && ended != roles.gateway && left > 0; --left) {
        ::usleep(10'000);
        if (::waitpid(roles.gateway, &how, WNOHANG) == roles.gateway) {
          gone = ended;
          ended = roles.gateway;
        }
      }
    }
    if (ended <= 0) {
      continue;
    }
    if (ended == roles.gateway && WIFEXITED(how)) {
      status = WEXITSTATUS(how);
    } else {
      PrintError("coffer: internal: a role of the daemon ended unexpectedly; everything ends");
    }
    for (const pid_t role : {roles.gateway, roles.warden, roles.egress}) {
      if (role != ended && role != gone) {
        // The warden ends its calls when the gateway's end of its socket is closed; it gets the time for that.
        if (role != roles.warden) {
          ::kill(role, SIGKILL);
        }
        ::waitpid(role, nullptr, 0);
      }
    }
    return status;
  }
}

}  // namespace

int RunMonitor(const Config& config) {
  Status prepared = PrepareState(config);
  Result<SocketPair> to_warden = MakeSocketPair();
  Result<SocketPair> to_egress = MakeSocketPair();
  if (!prepared.ok() || !to_warden.ok() || !to_egress.ok()) {
    const Error& error = !prepared.ok()   ? prepared.error()
                         : to_warden.ok() ? to_egress.error()
                                          : to_warden.error();
    PrintError(error);
    return error.kind == ErrorKind::kRefused ? 120 : kFailed;
  }
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    sigaddset(&watched, signal);
  }
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  const UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC));
  Roles roles;
  roles.warden = Start([&] { BecomeWarden(config, to_warden->first.get()); });
  roles.egress = Start([&] { BecomeEgress(to_egress->first.get()); });
  roles.gateway = Start([&] {
    to_warden->first.Reset();
    to_egress->first.Reset();
    Unblock();
    ::_exit(RunGateway(config, std::move(to_warden->second), std::move(to_egress->second)));
  });
  to_warden = SocketPair{};
  to_egress = SocketPair{};
  if (roles.warden < 0 || roles.egress < 0 || roles.gateway < 0) {
    PrintError(HostFault("daemon.fork", "the host cannot start the roles of the daemon"));
    return kFailed;  // those that started die with us
  }
  return Wait(roles, signals.get());
}

}  // namespace coffer::daemon
