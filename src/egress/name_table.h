// SPDX-License-Identifier: Apache-2.0
//
// The names that a boundary asked for, and the synthetic address of each.
//
// An address keeps its name for as long as the boundary lives: a program may use an answer at any
// later time, and must not reach another host by it. So nothing is ever removed, and a table that
// is full takes no more names.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/host_name.h"

namespace coffer::egress {

class NameTable {
 public:
  static constexpr size_t kMostNames = 1024;

  // The address of `name`, which it gets if it has none: one of each family, and `v6` says which.
  // Nothing if the table is full.
  std::optional<policy::IpAddress> AddressOf(const policy::HostName& name, bool v6);
  // Nothing if no name has this address.
  std::optional<policy::HostName> NameOf(const policy::IpAddress& address) const;

 private:
  std::vector<policy::HostName> names_;    // in the order of their addresses
  std::map<std::string, size_t> by_name_;  // the place in it
};

}  // namespace coffer::egress
