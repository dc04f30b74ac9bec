// SPDX-License-Identifier: Apache-2.0
#include "egress/deliver_schedule.h"

#include <algorithm>

namespace coffer::egress {

DeliverFate FateOf(const DeliverAnswer& answer) {
  if (answer.result != static_cast<uint32_t>(DeliverResult::kAnswered)) {
    return DeliverFate::kRetry;
  }
  if (answer.status >= 200 && answer.status < 300) {
    return DeliverFate::kDone;
  }
  const bool later = answer.status >= 500 || answer.status == 408 || answer.status == 429;
  return later ? DeliverFate::kRetry : DeliverFate::kRefused;
}

Nanos Backoff(uint32_t failures, Nanos first, Nanos most, uint64_t chance) {
  Nanos whole = std::min(first, most);
  for (uint32_t i = 1; i < failures && whole < most; ++i) {
    whole = whole > most / 2 ? most : whole * 2;
  }
  const Nanos half = whole / 2;
  return half + Nanos(static_cast<int64_t>(chance % (static_cast<uint64_t>(half.count()) + 1)));
}

}  // namespace coffer::egress
