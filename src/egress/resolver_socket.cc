// SPDX-License-Identifier: Apache-2.0
#include "egress/resolver_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/sys.h"

namespace coffer::egress {

using raw::Arg;
using raw::Syscall;

ResolverSocket::ResolverSocket(net::Loop& loop, Resolver& resolver, UniqueFd socket)
    : loop_(loop), resolver_(resolver), socket_(std::move(socket)) {
  Listen();
}

void ResolverSocket::Listen() {
  waiting_ = loop_.WatchReadable(socket_.get(), [this] { AnswerSome(); });
}

void ResolverSocket::AnswerSome() {
  const Nanos until = BootTime() + kTurn;
  for (int left = kMostAtOnce; left > 0 && (left == kMostAtOnce || BootTime() < until); --left) {
    if (!AnswerOne()) {
      return;
    }
  }
  // Others have their turn: a payload can send queries as fast as it likes.
  waiting_ = loop_.After(kPause, [this] { Listen(); });
}

bool ResolverSocket::AnswerOne() {
  char message[1024];  // a longer one is cut, and refused by its size
  sockaddr_in from{};
  socklen_t size = sizeof(from);
  const long got = Syscall(SYS_recvfrom, socket_.get(), Arg(message), sizeof(message), MSG_DONTWAIT,
                           Arg(&from), Arg(&size));
  if (got < 0) {
    return false;
  }
  if (const std::optional<std::string> answer =
          resolver_.Answer({message, static_cast<size_t>(got)})) {
    (void)Syscall(SYS_sendto, socket_.get(), Arg(answer->data()), answer->size(),
                  MSG_DONTWAIT | MSG_NOSIGNAL, Arg(&from), size);
  }
  return true;
}

}  // namespace coffer::egress
