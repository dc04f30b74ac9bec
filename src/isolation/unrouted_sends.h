// SPDX-License-Identifier: Apache-2.0
//
// How often a payload tried to send something to an address outside, by the kernel's own count.
//
// A boundary's network is its loopback. The kernel refuses every connect and every datagram to another address with
// ENETUNREACH, and counts it for the whole network namespace (OutNoRoutes, Ip6OutNoRoutes; ip(7), RFC 4293). So this
// sees what no server of system calls is asked about: a datagram without a connection, and a connect in calls whose
// kernel connects by itself. It knows no address.
//
// The counters begin at zero with the namespace, and nothing in a boundary's start adds to them. The payload can neither
// reset them nor leave its namespace. The descriptors are opened before it runs and keep the namespace, so the count
// can be read when every process inside has ended.
//
// Not counted: a socket that was bound to the loopback device itself. The kernel then drops what it sends to IPv4
// addresses outside, and says that it was sent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::isolation {

class UnroutedSends {
 public:
  UnroutedSends() = default;  // counts nothing

  // Of the network namespace that `pid` is in now. A kernel without IPv6 has no counter for it.
  static Result<UnroutedSends> Open(pid_t pid);

  bool opened() const { return ipv4_.valid(); }
  // Since the namespace was made. Nothing if the kernel's text cannot be read.
  std::optional<uint64_t> Count() const;

 private:
  UniqueFd ipv4_;
  UniqueFd ipv6_;
};

// The two formats. Nothing if the counter is not there.
std::optional<uint64_t> ParseOutNoRoutes(std::string_view snmp);
std::optional<uint64_t> ParseOutNoRoutes6(std::string_view snmp6);

}  // namespace coffer::isolation
