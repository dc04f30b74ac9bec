// SPDX-License-Identifier: Apache-2.0
#include "call/run/published_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <utility>

#include "base/sys.h"
#include "call/run/port_forwarder.h"

namespace coffer::call {
namespace {

using raw::Arg;
using raw::Syscall;

Error CannotListen(uint16_t port, long answer) {
  const char* hint = "give another one: --publish 0:PORT takes any that is free";
  if (answer == -EACCES) {
    hint = "ports below 1024 are root's: write --publish 8080:PORT, or another from 1024 on";
  }
  return Refused("policy.publish",
                 fmt::format("--publish: cannot listen on 127.0.0.1:{}: {}", port,
                             sys::ErrnoText(static_cast<int>(-answer))),
                 hint);
}

// Listens on `port` of the host's loopback; 0 becomes the number that was free.
Result<UniqueFd> ListenOnLoopback(uint16_t& port) {
  const long made = Syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) {
    return CannotListen(port, made);
  }
  UniqueFd listener(static_cast<int>(made));
  TRY(BoundSocket(listener.get()));
  const int on = 1;  // lingering connections of an earlier call must not block the port
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  long answer = Syscall(SYS_setsockopt, made, SOL_SOCKET, SO_REUSEADDR, Arg(&on), sizeof(on));
  if (answer >= 0) {
    answer = Syscall(SYS_bind, made, Arg(&address), sizeof(address));
  }
  if (answer >= 0) {
    answer = Syscall(SYS_listen, made, 64);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_getsockname, made, Arg(&address), Arg(&size));
  }
  if (answer < 0) {
    return CannotListen(port, answer);
  }
  port = ntohs(address.sin_port);
  return listener;
}

}  // namespace

Result<PublishedPorts> PublishedPorts::Open(const std::vector<RunRequest::Publish>& wanted) {
  PublishedPorts published;
  published.ports_ = wanted;
  int ends[2] = {-1, -1};
  const long made = Syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, Arg(ends));
  if (made < 0) {
    return sys::ErrnoError("isolation.ports", "cannot make a channel to the forwarder", made);
  }
  published.ours_ = UniqueFd(ends[0]);
  published.theirs_ = UniqueFd(ends[1]);
  TRY_ASSIGN(sys::Pipe life, sys::MakePipe());
  for (RunRequest::Publish& port : published.ports_) {
    TRY_ASSIGN(const UniqueFd listener, ListenOnLoopback(port.host));
    TRY(SendPortOffer(published.ours_.get(), port.inside, listener.get(), life.read_end.get()));
  }
  published.life_ = std::move(life.write_end);
  return published;
}

}  // namespace coffer::call
