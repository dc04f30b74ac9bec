// SPDX-License-Identifier: Apache-2.0
//
// Ports of one rule, from the first to the last; a single port is both.
#pragma once

#include <cstdint>

namespace coffer::policy {

struct PortRange {
  uint16_t first = 443;
  uint16_t last = 443;
  bool Contains(uint16_t port) const { return first <= port && port <= last; }
  bool operator==(const PortRange&) const = default;
};

}  // namespace coffer::policy
