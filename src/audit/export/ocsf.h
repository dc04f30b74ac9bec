// SPDX-License-Identifier: Apache-2.0
//
// A call as OCSF events: API Activity (6003) for the call itself, and a Detection Finding (2004) for each denial of the
// isolation surface and each incident.
//
// The profile security_control says how the call was answered: allowed, denied, or stopped while it
// ran (which is "denied", disposition "access revoked"). Fields that OCSF does not have are in
// `unmapped`, as coffer.*. docs/EXPORT.md has the tables.
#pragma once

#include <vector>

#include "audit/export/fields.h"

namespace coffer::audit {

// The call's event first. At most 64 findings.
std::vector<Json> OcsfEvents(const Json& receipt, const TraceContext& trace);

}  // namespace coffer::audit
