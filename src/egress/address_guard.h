// SPDX-License-Identifier: Apache-2.0
//
// Which addresses may be dialled for the program inside a boundary.
//
// A name says nothing about where it leads: its owner may answer with 127.0.0.1. So the address
// that is about to be dialled is judged, by its number, and it is dialled as that number; no second
// lookup lies between. Only addresses of the internet pass, and neither this host's own ones nor an
// address that the program itself wrote instead of a name. The operator opens others range by range
// (--dangerously-allow-address). A range opens the block it lies in and no block inside that one:
// 169.254.0.0/16 leaves the metadata service closed, which needs its own /32.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/host_name.h"
#include "policy/ip_address.h"

namespace coffer::egress {

class AddressGuard {
 public:
  using IsOwn = bool (*)(const policy::IpAddress&);
  // `own` are the addresses of this host's interfaces; those on loopback need not be in it.
  // `is_own_now` is asked for those that are not: an interface may have got another address since.
  // Null: none is asked.
  explicit AddressGuard(std::vector<policy::AddressRange> exceptions = {},
                        std::vector<policy::IpAddress> own = {}, IsOwn is_own_now = nullptr);

  // Why `address`, found for `host`, may not be dialled; nothing if it may. Completes "ADDRESS is ...".
  std::optional<std::string> Object(const policy::HostName& host,
                                    const policy::IpAddress& address) const;

 private:
  bool IsExcepted(const policy::IpAddress& address, const policy::AddressRange* inside) const;

  std::vector<policy::AddressRange> exceptions_;
  std::vector<policy::IpAddress> own_;
  IsOwn is_own_now_;
};

// Whether this host has the address at this moment: the kernel would then reach it from that same
// address (a datagram socket is connected, nothing is sent). True also if there is no socket to
// find out. What only a route makes local (`ip route add local`) is not an address of an interface,
// and is not found.
bool IsOwnAddressNow(const policy::IpAddress& address);

// Why a name may not even be resolved: localhost, metadata services. Nothing if it may.
std::optional<std::string> ObjectToHostName(const policy::HostName& host);

}  // namespace coffer::egress
