// SPDX-License-Identifier: Apache-2.0
//
// Looks at --allow and the flags that belong to it, so that a mistake is found before anything starts. The egress process
// reads the same texts with the same code.
#pragma once

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// kRefused with a hint for a rule, a name or an address that is not one. Sets egress_intercepts.
Status CheckEgressFlags(call::RunRequest& request);

}  // namespace coffer::cli
