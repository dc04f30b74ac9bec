// SPDX-License-Identifier: Apache-2.0
#include "cli/process_control.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/passed_fds.h"
#include "base/sys.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr const char* kName = "control";
constexpr timeval kControlPatience{10, 0};

struct Message {
  uint32_t magic = 0x636f4b10;
  uint32_t verb = 0;
  int32_t value = 0;
};

Error ControlError(const char* what, long answer) {
  return sys::ErrnoError("isolation.process", what, answer);
}

// A path of its own would be too long for a socket: state directories lie deep.
sockaddr_un AddressIn(int dir) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", dir, kName);
  memcpy(address.sun_path, path.c_str(), std::min(path.size() + 1, sizeof(address.sun_path) - 1));
  return address;
}

bool IsOwnUser(int connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

long Send(int socket, const Message& message, int given, int flags) {
  return SendWithFds(socket, std::as_bytes(std::span(&message, 1)),
                     std::span(&given, given >= 0 ? 1 : 0), flags);
}

// True if one whole message came; `given` gets the descriptor that came with it, if there was one.
bool Receive(int socket, Message& message, UniqueFd& given, int flags) {
  MessageWithFds came;
  do {
    came = ReceiveWithFds(socket, std::as_writable_bytes(std::span(&message, 1)), flags);
  } while (came.got == -EINTR);
  if (came.fds.size() > 1 || came.got != static_cast<long>(sizeof(message)) ||
      message.magic != Message().magic || came.cut) {
    return false;
  }
  if (!came.fds.empty()) {
    given = std::move(came.fds.front());
  }
  return true;
}

Result<UniqueFd> MakeSocket() {
  const long made = Syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (made < 0) {
    return ControlError("cannot make a socket", made);
  }
  return UniqueFd(static_cast<int>(made));
}

}  // namespace

Result<UniqueFd> ListenForVerbs(int dir) {
  TRY_ASSIGN(UniqueFd listener, MakeSocket());
  (void)Syscall(SYS_unlinkat, dir, Arg(kName), 0);
  const sockaddr_un address = AddressIn(dir);
  long answer = Syscall(SYS_bind, listener.get(), Arg(&address), sizeof(address));
  if (answer >= 0) {
    answer = Syscall(SYS_listen, listener.get(), 64);
  }
  if (answer < 0) {
    return ControlError("cannot listen in the directory of a background process", answer);
  }
  return listener;
}

UniqueFd AcceptVerb(int listener) {
  const long accepted = Syscall(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
  UniqueFd connection(accepted < 0 ? -1 : static_cast<int>(accepted));
  if (connection && !IsOwnUser(connection.get())) {
    connection.Reset();
  }
  return connection;
}

std::optional<KeeperRequest> ReadRequest(int connection) {
  Message message;
  UniqueFd unwanted;
  if (!Receive(connection, message, unwanted, MSG_DONTWAIT) || message.verb < 1 ||
      message.verb > 3) {
    return std::nullopt;
  }
  return KeeperRequest{static_cast<KeeperVerb>(message.verb), message.value};
}

void SendAnswer(int connection, bool good, int given) {
  Message message;
  message.value = good ? 1 : 0;
  (void)Send(connection, message, given, MSG_DONTWAIT);
}

Result<std::optional<UniqueFd>> FindKeeper(int dir) {
  TRY_ASSIGN(UniqueFd connection, MakeSocket());
  const sockaddr_un address = AddressIn(dir);
  // A keeper that was stopped (SIGSTOP) accepts nothing; a full queue must not hold us up.
  (void)::setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &kControlPatience,
                     sizeof(kControlPatience));
  (void)::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kControlPatience,
                     sizeof(kControlPatience));
  const long answer = Syscall(SYS_connect, connection.get(), Arg(&address), sizeof(address));
  if (answer == -ENOENT || answer == -ECONNREFUSED) {
    return std::optional<UniqueFd>();
  }
  if (answer < 0) {
    return ControlError("cannot reach the keeper of a background process", answer);
  }
  if (!IsOwnUser(connection.get())) {
    return HostFault("isolation.process",
                     "the socket of a background process belongs to another user",
                     "look at `processes` in the state directory: Cofferdam did not make that");
  }
  return std::optional<UniqueFd>(std::move(connection));
}

Result<UniqueFd> AskKeeper(int connection, KeeperRequest request) {
  Message message;
  message.verb = static_cast<uint32_t>(request.verb);
  message.value = request.value;
  UniqueFd given;
  Message answer;
  if (Send(connection, message, -1, 0) < 0 || !Receive(connection, answer, given, 0)) {
    return HostFault("isolation.process", "a background process has ended, or does not answer",
                     "`coffer sessions processes ID` says which are there");
  }
  if (answer.value != 1) {
    return Refused("policy.process", "the background process refused that");
  }
  return given;
}

bool AwaitEnd(int connection, std::chrono::milliseconds limit) {
  const Nanos end = BootTime() + Nanos(limit);
  while (true) {
    const Nanos left = end - BootTime();
    if (left <= Nanos(0)) {
      return false;
    }
    pollfd wait = {connection, POLLIN, 0};
    const timespec time{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    const long ready = Syscall(SYS_ppoll, Arg(&wait), 1, Arg(&time), 0, 0);
    if (ready > 0) {
      char byte = 0;
      const long got = Syscall(SYS_recvfrom, connection, Arg(&byte), 1, MSG_DONTWAIT, 0, 0);
      if (got <= 0 && got != -EAGAIN && got != -EINTR) {
        return true;
      }
    }
  }
}

}  // namespace coffer::cli
