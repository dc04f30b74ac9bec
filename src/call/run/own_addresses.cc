// SPDX-License-Identifier: Apache-2.0
#include "call/run/own_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <array>

#include "policy/ip_address.h"

namespace coffer::call {

Result<std::vector<std::string>> OwnAddresses() {
  using policy::IpAddress;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return HostFault("egress.addresses", "the addresses of this host cannot be read",
                     "a call with network must not reach them, so it does not start");
  }
  std::vector<std::string> own;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) {
      continue;
    }
    if (one->ifa_addr->sa_family == AF_INET) {
      std::array<uint8_t, 4> bytes;
      memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, 4);
      own.push_back(IpAddress::V4(bytes).text());
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      std::array<uint8_t, 16> bytes;
      memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, 16);
      own.push_back(IpAddress::V6(bytes).text());
    }
  }
  ::freeifaddrs(list);
  return own;
}

}  // namespace coffer::call
