// SPDX-License-Identifier: Apache-2.0
#include "cli/serving_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/passed_fds.h"
#include "base/sys.h"
#include "base/text.h"
#include "call/warden/protocol.h"
#include "cli/detached.h"
#include "cli/inside_control.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kReadyMillis = 20000;  // a loaded machine, a store that another process writes to
constexpr int kFinishSeconds = 20;   // to end boundaries and seal what they left

Error ToolsFault(std::string message) {
  return HostFault("isolation.tools", std::move(message),
                   "calls that it ran may be unknown in the record; run the command again");
}

// In the child: both descriptors at their places, nothing else, and this program once more.
[[noreturn]] void BecomeServing(std::vector<char*>& argv, int control, int second) {
  sigset_t none;
  sigemptyset(&none);
  const long high_control = Syscall(SYS_fcntl, control, F_DUPFD_CLOEXEC, 64);
  const long high_second = Syscall(SYS_fcntl, second, F_DUPFD_CLOEXEC, 64);
  if (::setpgid(0, 0) == 0 && high_control >= 0 && high_second >= 0 &&
      PointAtNull({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) &&
      Syscall(SYS_dup3, high_control, kInsideControl, 0) >= 0 &&
      Syscall(SYS_dup3, high_second, kInsideSecond, 0) >= 0 &&
      Syscall(SYS_close_range, kInsideSecond + 1, ~0U, 0) >= 0 &&
      ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0) {
    ::execve("/proc/self/exe", argv.data(), environ);
  }
  ::_exit(kExitNotFound);
}

}  // namespace

ServingProcess::~ServingProcess() { Kill(); }

void ServingProcess::Kill() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
}

Status ServingProcess::StartWith(std::vector<std::string> words, int second) {
  Kill();  // a launch at a weaker level begins again
  TRY_ASSIGN(call::SocketPair pair, call::MakeSocketPair(SOCK_SEQPACKET));
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) {
    return HostFault("isolation.host", "the host cannot start another process",
                     "wait until calls have ended, or raise its limits");
  }
  if (pid_ == 0) {
    BecomeServing(argv, pair.second.get(), second);
  }
  control_ = std::move(pair.first);
  return {};
}

Status ServingProcess::Open(UniqueFd listener) {
  pollfd ready{control_.get(), POLLIN, 0};
  std::string message(kMostInsideError, '\0');
  long got = 0;
  if (::poll(&ready, 1, kReadyMillis) == 1) {
    got = Syscall(SYS_recvfrom, control_.get(), Arg(message.data()), message.size(), MSG_DONTWAIT,
                  0, 0);
  }
  message.resize(got < 0 ? 0 : static_cast<size_t>(got));
  if (message.starts_with('E') || message.starts_with('F')) {
    const size_t first = message.find('\n');
    const size_t second = message.find('\n', first == std::string::npos ? first : first + 1);
    if (second != std::string::npos) {
      Error error = Refused(Printable(message.substr(1, first - 1)),
                            Printable(message.substr(first + 1, second - first - 1)),
                            Printable(message.substr(second + 1)));
      error.kind = message[0] == 'E' ? ErrorKind::kRefused : ErrorKind::kHost;
      return error;
    }
  }
  if (message != "R") {
    return ToolsFault("the process that serves the tools did not start");
  }
  const long sent = SendPassedFds(control_.get(), 'L', std::array{listener.get()});
  return sent < 0 ? Status(sys::ErrnoError("isolation.tools", "cannot hand over the tools' socket",
                                           sent))
                  : Status();
}

Status ServingProcess::Finish() {
  if (!running()) {
    return {};
  }
  const long pidfd = Syscall(SYS_pidfd_open, pid_, 0);
  const UniqueFd watch(static_cast<int>(pidfd < 0 ? -1 : pidfd));
  (void)Syscall(SYS_shutdown, control_.get(), SHUT_RDWR);
  control_.Reset();
  pollfd ended{watch.get(), POLLIN, 0};
  const timespec patience{kFinishSeconds, 0};
  long polled = -EINTR;
  while (polled == -EINTR) {
    polled = pidfd < 0 ? 0 : Syscall(SYS_ppoll, Arg(&ended), 1, Arg(&patience), 0, 0);
  }
  if (polled != 1) {
    ::kill(pid_, SIGKILL);
  }
  int how = 0;
  ::waitpid(pid_, &how, 0);
  pid_ = -1;
  return WIFEXITED(how) && WEXITSTATUS(how) == 0
             ? Status()
             : Status(ToolsFault("the process that serves the tools ended before the run did"));
}

}  // namespace coffer::cli
