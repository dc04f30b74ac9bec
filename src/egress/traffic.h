// SPDX-License-Identifier: Apache-2.0
//
// One connection or request of a call, as it is written down when it is over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace coffer::egress {

struct Traffic {
  std::string host;
  uint16_t port = 0;
  std::string method;  // empty: not looked at
  std::string path;
  bool allowed = false;
  std::string rule;    // that allowed it
  std::string reason;  // why it was refused, or why an allowed one failed
  std::string fix;     // the flag that would allow it
  uint64_t bytes_out = 0;
  uint64_t bytes_in = 0;
  uint64_t millis = 0;
  std::string leads_to = {};  // the address because of which a name was refused
  bool held_value = false;    // it was refused because of a value that must never leave
};

using TrafficLog = std::function<void(const Traffic&)>;

}  // namespace coffer::egress
