// SPDX-License-Identifier: Apache-2.0
//
// Retention where no daemon runs: after a call, what is older than its time is forgotten.
#pragma once

#include "cli/state.h"
#include "store/retention.h"
#include "store/tenant_id.h"

namespace coffer::cli {

// The call is answered already: what fails here is tried again by the next one.
void ForgetOld(State& state, const store::TenantId& tenant, const store::Retention& retention);

}  // namespace coffer::cli
