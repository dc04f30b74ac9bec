// SPDX-License-Identifier: Apache-2.0
//
// Figures of the kernel about this process, for the metrics that every dashboard expects (process_*).
#pragma once

#include "audit/metrics/metrics.h"

namespace coffer::daemon {

// `started_at` is left as it is. What cannot be read is not a number.
void ReadProcessUse(audit::ProcessUse& use);

}  // namespace coffer::daemon
