// SPDX-License-Identifier: Apache-2.0
#include "call/run/egress_listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "call/run/port_forwarder.h"
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

template <typename Address>
Status BindTo(int socket, const Address& address) {
  const long bound = Syscall(SYS_bind, socket, Arg(&address), sizeof(address));
  return bound < 0 ? Status(ListenError("cannot bind a port inside the boundary", bound))
                   : Status();
}

Status Bind(int socket, const std::array<uint8_t, 4>& to, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  memcpy(&address.sin_addr, to.data(), to.size());
  return BindTo(socket, address);
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

Status ListenForNames6(int redirect) {
  if (redirect < 0) {
    return HostFault("isolation.redirect", "the kernel has no IPv6");
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(policy::kRedirectPort);
  memcpy(&address.sin6_addr, policy::kRedirectAddress6.data(), policy::kRedirectAddress6.size());
  TRY(SetOption(redirect, SOL_IPV6, IPV6_TRANSPARENT, 1));
  TRY(BindTo(redirect, address));
  return Listen(redirect);
}

Result<isolation::NameRedirect> ListenForNames(int resolver, int redirect, int netfilter,
                                               isolation::Boundary& boundary) {
  const UniqueFd route = boundary.TakeNameSocket(NameSocket::kRoute);
  if (resolver < 0 || !route || netfilter < 0) {
    return HostFault("isolation.redirect", "the kernel has no socket for nftables");
  }
  TRY_ASSIGN(isolation::NameRedirect made, isolation::EnforceNameRedirect(route.get(), netfilter));
  TRY(SetOption(resolver, SOL_SOCKET, SO_RCVBUF, kQueryBuffer));
  TRY(Bind(resolver, policy::kResolverAddress, policy::kResolverPort));
  // tproxy gives connections to other addresses only to a socket with this option (ip(7)).
  TRY(SetOption(redirect, SOL_IP, IP_TRANSPARENT, 1));
  TRY(Bind(redirect, policy::kResolverAddress, policy::kRedirectPort));
  TRY(Listen(redirect));
  return made;
}

}  // namespace

Status ListenInside(int socket, uint16_t port) {
  TRY(Bind(socket, {127, 0, 0, 1}, port));
  return Listen(socket);
}

Result<EgressListeners> ListenForEgress(isolation::Boundary& boundary) {
  UniqueFd proxy = boundary.TakePortSocket();
  UniqueFd redirect = boundary.TakePortSocket();
  if (!proxy || !redirect) {
    return Internal("isolation.ports", "the boundary did not make the sockets for its network");
  }
  TRY(BoundSocket(proxy.get()));
  TRY(BoundSocket(redirect.get()));
  EgressListeners listeners;
  TRY(ListenInside(proxy.get(), kEgressPort));
  listeners.sockets.proxy = std::move(proxy);
  UniqueFd resolver = boundary.TakeNameSocket(NameSocket::kDatagram);
  UniqueFd netfilter = boundary.TakeNameSocket(NameSocket::kNetfilter);
  Result<isolation::NameRedirect> names =
      ListenForNames(resolver.get(), redirect.get(), netfilter.get(), boundary);
  UniqueFd redirect6 = boundary.TakeNameSocket(NameSocket::kStream6);
  if (!names.ok()) {
    listeners.not_transparent = names.error().message;
    return listeners;
  }
  listeners.datagrams = isolation::NameDatagrams(std::move(netfilter));
  listeners.sockets.resolver = std::move(resolver);
  listeners.sockets.redirect = std::move(redirect);
  if (const Status names6 = names->ipv4_only ? Status(*std::move(names->ipv4_only))
                                             : ListenForNames6(redirect6.get());
      !names6.ok()) {
    listeners.ipv4_only = names6.error().message;
    return listeners;
  }
  listeners.sockets.redirect6 = std::move(redirect6);
  return listeners;
}

}  // namespace coffer::call
