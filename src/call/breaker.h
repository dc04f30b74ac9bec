// SPDX-License-Identifier: Apache-2.0
//
// Which calls count for the circuit breaker (store/breaker.h), as [breaker] of the configuration says it.
//
// A call counts once, however many operations it was denied. A request that was refused by a limit, a switch, the
// breaker itself or because its tool or session does not exist never counts: it never became a call. Neither does a dry
// run, nor `coffer run`, which is its user's own command.
#pragma once

#include "audit/receipt.h"
#include "store/breaker.h"

namespace coffer::call {

struct BreakerConfig {
  store::BreakerRule rule;  // without a section: off
  bool egress = true;  // a destination was refused, and not only a way to it (watch::kDatagramRule)
  bool incidents = true;  // a system call that looks like an escape (watch/incident.h)
  bool isolation =
      false;  // any other operation that the boundary refused; ordinary programs try some by habit
  bool policy = false;  // arguments that do not fit
  bool operator==(const BreakerConfig&) const = default;
};

bool IsCounted(const audit::Receipt& receipt, const BreakerConfig& config);

}  // namespace coffer::call
