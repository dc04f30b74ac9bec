// SPDX-License-Identifier: Apache-2.0
//
// The circuit breaker: an agent whose calls of one tool were denied too often may not call that tool for a while.
//
// Counted is for each tenant, tool and agent, and nothing counts for another: a call can pause its own agent for its
// own tool and nothing else. The call that reaches the number pauses the pair in the transaction that counts it, and
// admission looks at pauses in its own, so the next call after it is denied. Calls of the pair that run go on. While a
// pair is paused nothing is counted, so calls that end meanwhile do not prolong it; afterwards it starts from nothing.
//
// A pair has fewer rows than its rule has denials, and retention removes those that are too old to count. A pause is
// shown and lifted as a switch (switches.h), and survives a restart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/call_identity.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::store {

struct BreakerRule {
  uint64_t denials = 0;  // calls that were denied something; 0: never pauses
  Nanos within = std::chrono::minutes(10);
  Nanos pause = std::chrono::minutes(10);
  bool operator==(const BreakerRule&) const = default;
};

// Longer is not counted: what is older is removed. No pause is longer.
inline constexpr Nanos kLongestBreakerWindow = std::chrono::hours(24);
// What lies further in the future was written before the clock was set back by years (store_clock.h), and counts no
// more. Beyond any pause, because the clocks of two processes may differ a little.
inline constexpr Nanos kFarInTheFuture = 2 * kLongestBreakerWindow;

struct Pause {
  TenantId tenant = TenantId::None();
  std::string tool;
  std::string agent;
  std::string why;
  Nanos at{0};
  Nanos until{0};
};

// A call that was denied something has ended. The pause, if it is the one that reaches the number. Committed when it
// returns. Counting the same call twice counts it once.
Result<std::optional<Pause>> CountDenied(Store& store, const CallIdentity& call,
                                         const BreakerRule& rule);

// The name of a pause among the switches: "TOOL:AGENT". No tool's name has a colon.
std::string PauseName(std::string_view tool, std::string_view agent);

}  // namespace coffer::store
