// SPDX-License-Identifier: Apache-2.0
//
// The receipt of a call that was launched: the decision before it ran, and the report of its runner.
#pragma once

#include "audit/receipt.h"
#include "base/clock.h"

namespace coffer::call {

// Takes identity and decision from `before`, the outcome from `after`. `now` is the store's time.
audit::Receipt EndedReceipt(const audit::Receipt& before, audit::Receipt after, Nanos now);

// No report came back: how far the call came is not known.
audit::Receipt LostReceipt(audit::Receipt before, Nanos now);

}  // namespace coffer::call
