// SPDX-License-Identifier: Apache-2.0
//
// What calls may use up: rates, calls at the same time, budgets that add up, and identical retries of what failed.
//
// All of it is checked and taken inside the one transaction that admits a call (admission.h), so that neither several
// processes nor a restart give a tenant more. Rates use the arithmetic of policy/rate.h and the wall clock. A rate that
// changes its number or length starts from zero. Limits of a tool and of an agent count within one tenant, so no tenant
// can use up another's. Of budgets, what a call used is known only when it ends: the last admitted call may overshoot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "policy/rate.h"
#include "store/tenant.h"

namespace coffer::store {

// Caps; 0 is none.
struct Budget {
  uint64_t calls = 0;
  uint64_t retries = 0;  // calls that repeat one that failed
  Nanos cpu{0};
  uint64_t bytes_out = 0;
  Nanos period{0};  // of a tenant's: it starts anew so long after its first call; 0 is never
  bool operator==(const Budget&) const = default;
};

struct Spent {
  uint64_t calls = 0;
  uint64_t retries = 0;
  Nanos cpu{0};
  uint64_t bytes_out = 0;
  bool operator==(const Spent&) const = default;
};

// What applies to one call. The session's own budget is in its row.
struct Quotas {
  policy::RateLimits tenant;
  policy::RateLimits agent;
  policy::RateLimits tool;
  Budget tenant_budget;
  uint64_t stored_bytes = 0;  // results and receipts; far beyond it nothing new begins; 0: no bound
  // How long an identical call is refused after it failed twice in a row with nothing else of its agent succeeding in
  // between; 0: never.
  Nanos retry_cooldown{0};
};

// Something of that agent succeeded that is not a call: a file was written. What failed before may be tried again.
Status NoteProgress(Store& store, const TenantId& tenant, std::string_view agent);

}  // namespace coffer::store
