// SPDX-License-Identifier: Apache-2.0
//
// The receipt of a call that was launched: what was known before it ran, and what its runner reports.
#pragma once

#include "audit/receipt.h"
#include "base/clock.h"

namespace coffer::call {

// `before` says who asked for what and what was decided; `after` says how it went, and nothing else
// of it counts. `now` is the store's time.
audit::Receipt EndedReceipt(const audit::Receipt& before, audit::Receipt after, Nanos now);

// No report came back: how far the call came is not known.
audit::Receipt LostReceipt(audit::Receipt before, Nanos now);

}  // namespace coffer::call
