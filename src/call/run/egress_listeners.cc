// SPDX-License-Identifier: Apache-2.0
#include "call/run/egress_listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "isolation/name_redirect.h"
#include "policy/synthetic_block.h"

namespace coffer::call {
namespace {

using isolation::NameSocket;
using raw::Arg;
using raw::Syscall;

constexpr int kBacklog = 64;
constexpr int kQueryBuffer = 65536;  // a few hundred queries; the kernel doubles it

Error ListenError(const char* what, long answer) {
  return sys::ErrnoError("isolation.ports", what, answer);
}

Status Bind(int socket, const std::array<uint8_t, 4>& to, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  memcpy(&address.sin_addr, to.data(), to.size());
  const long bound = Syscall(SYS_bind, socket, Arg(&address), sizeof(address));
  return bound < 0 ? Status(ListenError("cannot bind a port inside the boundary", bound))
                   : Status();
}

Status Listen(int socket) {
  const long listening = Syscall(SYS_listen, socket, kBacklog);
  return listening < 0
             ? Status(ListenError("cannot listen on a port inside the boundary", listening))
             : Status();
}

Status SetOption(int socket, int level, int option, int value) {
  const long set = Syscall(SYS_setsockopt, socket, level, option, Arg(&value), sizeof(value));
  return set < 0 ? Status(ListenError("cannot set up a socket of the boundary", set)) : Status();
}

Status ListenForNames(int resolver, int redirect, isolation::Boundary& boundary) {
  const UniqueFd route = boundary.TakeNameSocket(NameSocket::kRoute);
  const UniqueFd netfilter = boundary.TakeNameSocket(NameSocket::kNetfilter);
  if (resolver < 0 || !route || !netfilter) {
    return HostFault("isolation.redirect", "the kernel has no socket for nftables");
  }
  TRY(isolation::EnforceNameRedirect(route.get(), netfilter.get()));
  TRY(SetOption(resolver, SOL_SOCKET, SO_RCVBUF, kQueryBuffer));
  TRY(Bind(resolver, policy::kResolverAddress, policy::kResolverPort));
  TRY(SetOption(redirect, SOL_IP, IP_TRANSPARENT, 1));
  TRY(Bind(redirect, policy::kResolverAddress, policy::kRedirectPort));
  return Listen(redirect);
}

}  // namespace

Status ListenInside(int socket, uint16_t port) {
  TRY(Bind(socket, {127, 0, 0, 1}, port));
  return Listen(socket);
}

Result<EgressListeners> ListenForEgress(UniqueFd proxy, UniqueFd redirect,
                                        isolation::Boundary& boundary) {
  EgressListeners listeners;
  TRY(ListenInside(proxy.get(), kEgressPort));
  listeners.sockets.proxy = std::move(proxy);
  UniqueFd resolver = boundary.TakeNameSocket(NameSocket::kDatagram);
  if (const Status names = ListenForNames(resolver.get(), redirect.get(), boundary); !names.ok()) {
    listeners.not_transparent = names.error().message;
    return listeners;
  }
  listeners.sockets.resolver = std::move(resolver);
  listeners.sockets.redirect = std::move(redirect);
  return listeners;
}

}  // namespace coffer::call
