// SPDX-License-Identifier: Apache-2.0
#include "egress/address_guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "policy/address_class.h"

namespace coffer::egress {
namespace {

constexpr uint16_t kAnyPort = 9;  // of the datagram socket, which sends nothing

}  // namespace

using policy::AddressBlock;
using policy::AddressClass;
using policy::AddressRange;
using policy::HostName;
using policy::IpAddress;
using raw::Arg;
using raw::Syscall;

AddressGuard::AddressGuard(std::vector<AddressRange> exceptions, std::vector<IpAddress> own,
                           IsOwn is_own_now)
    : exceptions_(std::move(exceptions)), own_(std::move(own)), is_own_now_(is_own_now) {}

// `inside` is the block that the exception must lie in; null: any exception that holds the address.
bool AddressGuard::IsExcepted(const IpAddress& address, const AddressRange* inside) const {
  return std::any_of(exceptions_.begin(), exceptions_.end(), [&](const AddressRange& range) {
    return range.Contains(address) && (inside == nullptr || inside->Contains(range));
  });
}

std::optional<std::string> AddressGuard::Object(const HostName& host,
                                                const IpAddress& address) const {
  const IpAddress plain = policy::Unmapped(address);
  const std::optional<AddressBlock> block = policy::BlockOf(plain);
  if (block &&
      (block->kind == AddressClass::kUnspecified || block->kind == AddressClass::kMulticast)) {
    return std::string(block->name);  // no exception: no host has such an address
  }
  const bool loopback = block && block->kind == AddressClass::kLoopback;
  const AddressRange alone{plain, static_cast<uint8_t>(plain.size() * 8)};
  if (!loopback && !IsExcepted(plain, &alone) &&
      (std::find(own_.begin(), own_.end(), plain) != own_.end() ||
       (is_own_now_ != nullptr && is_own_now_(plain)))) {
    return "an address of this host";
  }
  if (block && !IsExcepted(plain, &block->range)) {
    return std::string(block->name);
  }
  if (block && block->kind == AddressClass::kTranslated) {
    const auto inner = policy::AddressInside(plain);
    return inner ? Object(HostName(), *inner) : std::nullopt;
  }
  if (!block && host.address() && !IsExcepted(plain, nullptr)) {
    return "written as a number: nothing proves which host answers there";
  }
  return std::nullopt;
}

bool IsOwnAddressNow(const IpAddress& address) {
  sockaddr_storage to{};
  if (address.is_v6()) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(kAnyPort);
    memcpy(&v6.sin6_addr, address.data(), address.size());
    memcpy(&to, &v6, sizeof(v6));
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(kAnyPort);
    memcpy(&v4.sin_addr, address.data(), address.size());
    memcpy(&to, &v4, sizeof(v4));
  }
  const long made = Syscall(SYS_socket, to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0) {
    return made != -EAFNOSUPPORT;  // without the family nothing is dialled
  }
  const UniqueFd probe(static_cast<int>(made));
  socklen_t size = address.is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (Syscall(SYS_connect, probe.get(), Arg(&to), size) < 0) {
    return false;  // no route leads there, so nothing is dialled
  }
  sockaddr_storage from{};
  size = sizeof(from);
  if (Syscall(SYS_getsockname, probe.get(), Arg(&from), Arg(&size)) < 0) {
    return true;
  }
  const void* const source =
      address.is_v6()
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&from)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(&from)->sin_addr;
  return memcmp(source, address.data(), address.size()) == 0;
}

std::optional<std::string> ObjectToHostName(const HostName& host) {
  if (policy::IsLocalName(host.text())) {
    return "the host itself";
  }
  if (policy::IsMetadataName(host.text())) {
    return "the metadata service of a cloud";
  }
  return std::nullopt;
}

}  // namespace coffer::egress
