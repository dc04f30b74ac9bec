// SPDX-License-Identifier: Apache-2.0
#include "cli/inside_control.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/passed_fds.h"
#include "base/sys.h"

namespace coffer::cli {
namespace {

Status SayInside(const std::string& message) {
  const long sent = raw::Syscall(SYS_sendto, kInsideControl, raw::Arg(message.data()),
                                 static_cast<long>(message.size()), MSG_NOSIGNAL, 0, 0);
  return sent < 0 ? Status(sys::ErrnoError("internal", "cannot answer the run", sent)) : Status();
}

}  // namespace

bool TakeInsidePlaces() {
  int type = 0;
  socklen_t size = sizeof(type);
  return ::getsockopt(kInsideControl, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_SEQPACKET && ::fcntl(kInsideControl, F_SETFD, FD_CLOEXEC) == 0 &&
         ::fcntl(kInsideSecond, F_SETFD, FD_CLOEXEC) == 0;
}

Status SayInsideReady() { return SayInside("R"); }

void SayInsideFailed(const Error& error) {
  const char kind = error.kind == ErrorKind::kRefused ? 'E' : 'F';
  (void)SayInside(fmt::format("{}{}\n{}\n{}", kind, error.code, error.message, error.hint)
                      .substr(0, kMostInsideError));
}

Result<UniqueFd> ReceiveInsideListener() {
  PassedFds received = ReceivePassedFds(kInsideControl);
  while (received.got == -EINTR) {
    received = ReceivePassedFds(kInsideControl);
  }
  if (received.got < 0) {
    return sys::ErrnoError("internal", "cannot hear of the run", received.got);
  }
  if (received.got == 0) {
    return UniqueFd();
  }
  if (received.word != 'L' || received.fds.size() != 1) {
    return Internal("internal", "the run sent something else than its socket");
  }
  return std::move(received.fds.front());
}

}  // namespace coffer::cli
