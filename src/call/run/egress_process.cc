// SPDX-License-Identifier: Apache-2.0
#include "call/run/egress_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/passed_fds.h"
#include "base/sys.h"
#include "base/text.h"
#include "call/run/daemon_program.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kMostNotices = 100;  // more than a process sends
constexpr int kEndMillis = 3000;   // to write down what it had open

Error EgressError(const char* what, long answer) {
  return sys::ErrnoError("egress.process", what, answer);
}

Result<UniqueFd> MakeMemory(const std::string& content) {
  const long made =
      Syscall(SYS_memfd_create, Arg("coffer-egress"), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) {
    return EgressError("cannot make a memory file", made);
  }
  UniqueFd memory(static_cast<int>(made));
  TRY(sys::WriteAll(memory.get(), content));
  // A descriptor that is handed over shares its position with ours.
  (void)Syscall(SYS_lseek, memory.get(), 0, SEEK_SET);
  return memory;
}

// 3, 4, 5 in their order, and nothing else but an empty stdio. Only before execve.
bool TakePlaces(int control, int grants, int log) {
  int fds[] = {control, grants, log};
  // Out of the way first: one of them may lie where another has to go.
  for (int& fd : fds) {
    const long high = Syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 64);
    if (high < 0) {
      return false;
    }
    fd = static_cast<int>(high);
  }
  const long null = Syscall(SYS_openat, AT_FDCWD, Arg("/dev/null"), O_RDWR | O_CLOEXEC, 0);
  if (null < 0) {
    return false;
  }
  for (int place = 0; place <= STDERR_FILENO; ++place) {
    // dup3 refuses the same number twice; then it is in its place and only closes on exec.
    if (null != place ? Syscall(SYS_dup3, null, place, 0) < 0
                      : Syscall(SYS_fcntl, null, F_SETFD, 0) < 0) {
      return false;
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (Syscall(SYS_dup3, fds[i], kEgressControl + i, 0) < 0) {
      return false;
    }
  }
  return Syscall(SYS_close_range, kEgressLog + 1, ~0U, 0) >= 0;
}

// In the child. A group of its own: Ctrl-C goes to the command, and the process ends with its supervisor.
[[noreturn]] void Become(pid_t parent, const std::vector<std::string>& places, char* const* env,
                         int control, int grants, int log) {
  sigset_t none;
  sigemptyset(&none);
  char name[] = "cofferd";
  char role[] = "egress-call";
  char* const argv[] = {name, role, nullptr};
  if (::setpgid(0, 0) == 0 && Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) >= 0 &&
      ::getppid() == parent && TakePlaces(control, grants, log) &&
      ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0) {
    for (const std::string& place : places) {
      ::execve(place.c_str(), argv, env);
    }
  }
  ::_exit(kExitNotFound);
}

}  // namespace

EgressProcess::EgressProcess(EgressProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      ready_by_(other.ready_by_),
      stop_fd_(other.stop_fd_),
      control_(std::move(other.control_)),
      log_(std::move(other.log_)) {}

EgressProcess& EgressProcess::operator=(EgressProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(ready_by_, other.ready_by_);
  std::swap(stop_fd_, other.stop_fd_);
  std::swap(control_, other.control_);
  std::swap(log_, other.log_);
  return *this;
}

EgressProcess::~EgressProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

Result<EgressProcess::Given> EgressProcess::MakeChannel(const EgressOrder& order) {
  const std::string text = EncodeOrder(order);
  if (text.size() > kMostGrantBytes) {
    return Refused("policy.egress", "the rules for the network are too long",
                   "give fewer rules, or a smaller file of upstream certificates");
  }
  Given given;
  TRY_ASSIGN(given.order, MakeMemory(text));
  TRY_ASSIGN(log_, MakeMemory(std::string(sizeof(EgressLogHead), '\0')));
  const long sealed = Syscall(SYS_fcntl, given.order.get(), F_ADD_SEALS,
                              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  if (sealed < 0) {
    return EgressError("cannot seal the rules", sealed);
  }
  int ends[2] = {-1, -1};
  const long made = Syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, Arg(ends));
  if (made < 0) {
    return EgressError("cannot make a channel to the egress process", made);
  }
  control_ = UniqueFd(ends[0]);
  given.control = UniqueFd(ends[1]);
  return given;
}

Result<EgressProcess> EgressProcess::Ask(int door, const EgressOrder& order, Nanos patience) {
  EgressProcess process;
  process.ready_by_ = BootTime() + patience;
  TRY_ASSIGN(const Given given, process.MakeChannel(order));
  // Never waits: a role that takes no calls must not hold up the supervisor.
  const long sent = SendPassedFds(
      door, 'C', std::array{given.control.get(), given.order.get(), process.log_.get()},
      MSG_DONTWAIT);
  if (sent < 0) {
    return HostFault("egress.start", "the egress role takes no calls", "try again in a moment");
  }
  return process;
}

Result<EgressProcess> EgressProcess::Start(const EgressOrder& order, Nanos patience) {
  TRY_ASSIGN(const std::vector<std::string> places, DaemonPlaces());
  bool found = false;
  for (const std::string& place : places) {
    found = found || ::access(place.c_str(), X_OK) == 0;
  }
  if (!found) {
    return HostFault("egress.missing", "cofferd is not beside coffer, and --allow needs it",
                     "install both; `make all` builds them");
  }
  EgressProcess process;
  process.ready_by_ = BootTime() + patience;
  TRY_ASSIGN(const Given given, process.MakeChannel(order));
  // Of the environment only what says which certificates this host trusts. No search list: a name
  // that is not there must not become a query for another one. A resolver that does not answer has
  // 8 s.
  std::string search = "LOCALDOMAIN=";
  std::string options = "RES_OPTIONS=timeout:2 attempts:2";
  std::string trust;
  if (const char* const named = ::getenv("SSL_CERT_FILE"); named != nullptr) {
    trust = std::string("SSL_CERT_FILE=") + named;
  }
  char* const env[] = {search.data(), options.data(), trust.empty() ? nullptr : trust.data(),
                       nullptr};
  const pid_t parent = ::getpid();
  process.pid_ = ::fork();
  if (process.pid_ < 0) {
    return HostFault("isolation.host", "the host cannot start another process",
                     "wait until calls have ended, or raise its limits");
  }
  if (process.pid_ == 0) {
    Become(parent, places, env, given.control.get(), given.order.get(), process.log_.get());
  }
  return process;
}

// A message that begins with `word`; what follows it. The CA may not have been waited for. However
// many messages come, the time until the process is ready is one.
Result<std::string> EgressProcess::Await(char word) {
  std::string message(kMostCaBytes, '\0');
  long got = 0;
  do {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(ready_by_ - BootTime()).count();
    pollfd waits[2] = {{control_.get(), POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (left <= 0 || ::poll(waits, 2, static_cast<int>(left)) == 0) {
      return HostFault("egress.start", "the egress process was not ready in time",
                       "the host is overloaded, or the process hangs: call once more");
    }
    if (waits[1].revents != 0) {
      return HostFault("egress.start", "the call was told to end before its network was ready");
    }
    got = Syscall(SYS_recvfrom, control_.get(), Arg(message.data()), message.size(), MSG_DONTWAIT,
                  0, 0);
  } while (got > 0 && message[0] == 'K' && word == 'R');
  if (got <= 0 || (message[0] != word && message[0] != 'E' && message[0] != 'H')) {
    return HostFault("egress.start", "the egress process did not start",
                     pid_ > 0 ? "cofferd must be of the same version as coffer, with its libraries "
                                "installed"
                              : "the daemon starts it again: call once more");
  }
  message.resize(static_cast<size_t>(got));
  if (message[0] == word) {
    return message.substr(1);
  }
  const size_t end = message.find('\n');
  return Error{message[0] == 'E' ? ErrorKind::kRefused : ErrorKind::kHost, "egress.start",
               Printable(message.substr(1, end - 1)),
               end == std::string::npos ? "" : Printable(message.substr(end + 1))};
}

Status EgressProcess::GiveListeners(const egress::Listeners& listeners) {
  const int fds[] = {listeners.proxy.get(), listeners.resolver.get(), listeners.redirect.get(),
                     listeners.redirect6.get()};
  const size_t valid = !listeners.redirect ? 1 : !listeners.redirect6 ? 3 : 4;
  const long sent = SendPassedFds(control_.get(), 'L', std::span(fds, valid));
  return sent < 0 ? Status(EgressError("cannot hand the listeners to the egress process", sent))
                  : Status();
}

std::optional<egress::AccessNotice> EgressProcess::TakeNotice(bool& gone) {
  std::string message(kMostNoticeBytes, '\0');
  const long got = Syscall(SYS_recvfrom, control_.get(), Arg(message.data()), message.size(),
                           MSG_DONTWAIT, 0, 0);
  gone = got <= 0 && got != -EAGAIN && got != -EINTR;
  return got <= 0 ? std::nullopt
                  : DecodeNotice(std::string_view(message).substr(0, static_cast<size_t>(got)));
}

void EgressProcess::Decide(const egress::AccessDecision& decision) {
  const std::string message = EncodeDecision(decision);
  (void)Syscall(SYS_sendto, control_.get(), Arg(message.data()), message.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
}

void EgressProcess::BeginEnd() {
  if (running()) {
    // The process reads the end of its orders, and can still write its last words.
    (void)Syscall(SYS_shutdown, control_.get(), SHUT_WR);
  }
}

// Whether the process says, in time, that its whole record is written.
bool EgressProcess::HearEnd() {
  pollfd said{control_.get(), POLLIN, 0};
  char word = 'Q';
  // Unread notices come first, at most two for each request.
  for (int left = kMostNotices; word == 'Q' && left > 0; --left) {
    if (::poll(&said, 1, kEndMillis) != 1 ||
        Syscall(SYS_recvfrom, control_.get(), Arg(&word), 1, MSG_DONTWAIT, 0, 0) != 1) {
      return false;
    }
  }
  return word == 'F';
}

EgressProcess::End EgressProcess::Finish() {
  End end;
  end.early = !HearEnd();
  control_.Reset();
  if (pid_ > 0) {
    ::kill(pid_,
           SIGKILL);  // it has nothing left to do; its memory is taken down beside what follows
  }
  struct stat info{};
  (void)Syscall(SYS_fstat, log_.get(), Arg(&info));
  std::string text(std::min<size_t>(static_cast<size_t>(info.st_size), kMostLogBytes + 1), '\0');
  const long got = Syscall(SYS_pread64, log_.get(), Arg(text.data()), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  end.log = DecodeLog(text);
  return end;
}

}  // namespace coffer::call
