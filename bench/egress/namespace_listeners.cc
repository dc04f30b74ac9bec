// SPDX-License-Identifier: Apache-2.0
#include "bench/egress/namespace_listeners.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

namespace coffer::bench {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void RaiseLoopback() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) {
    Fail("lo");
  }
}

UniqueFd Bound(int family, int type, uint16_t port) {
  UniqueFd socket(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in v4 = LoopbackAddress(port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  const bool is_v6 = family == AF_INET6;
  const auto* const address =
      is_v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  if (::bind(socket.get(), address, is_v6 ? sizeof(v6) : sizeof(v4)) != 0 ||
      (type == SOCK_STREAM && ::listen(socket.get(), 64) != 0)) {
    Fail("listener");
  }
  return socket;
}

}  // namespace

sockaddr_in LoopbackAddress(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

egress::Listeners MakeNetworkListeners() {
  if (::unshare(CLONE_NEWNET) != 0) {
    Fail("unshare");
  }
  RaiseLoopback();
  egress::Listeners listeners;
  listeners.proxy = Bound(AF_INET, SOCK_STREAM, kProxyPort);
  listeners.resolver = Bound(AF_INET, SOCK_DGRAM, 53);
  listeners.redirect = Bound(AF_INET, SOCK_STREAM, 3129);
  listeners.redirect6 = Bound(AF_INET6, SOCK_STREAM, 3129);
  return listeners;
}

}  // namespace coffer::bench
