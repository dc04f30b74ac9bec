// SPDX-License-Identifier: Apache-2.0
//
// When something is tried again, as plain arithmetic.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "egress/deliver_protocol.h"

namespace coffer::egress {

enum class DeliverFate : uint8_t {
  kDone,     // 2xx: it has it
  kRetry,    // no answer, 5xx, 408, 429: to be sent again later
  kRefused,  // any other answer, also a redirect: it does not want it, and gets a few more chances
};
DeliverFate FateOf(const DeliverAnswer& answer);

// How long to wait after `failures` of them in a row (at least 1): `first`, doubled each time, at
// most `most`, and of that between a half and all, by chance, so that many senders do not come back
// together.
Nanos Backoff(uint32_t failures, Nanos first, Nanos most, uint64_t chance);

}  // namespace coffer::egress
