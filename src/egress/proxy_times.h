// SPDX-License-Identifier: Apache-2.0
//
// How long what a proxy carries may stand still. Tests have shorter times.
#pragma once

#include <chrono>

#include "base/clock.h"

namespace coffer::egress {

struct ProxyTimes {
  std::chrono::seconds idle{300};  // without a byte either way
  std::chrono::seconds answer{
      290};  // for the head of an answer; less, so that the program can be told
  std::chrono::seconds half_open{60};     // without a byte, once the program has closed its side
  Nanos minute{std::chrono::minutes(1)};  // of access that is granted for minutes
};

}  // namespace coffer::egress
