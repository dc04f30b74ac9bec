// SPDX-License-Identifier: Apache-2.0
//
// The receivers of the configuration file, for the egress role: read at its start, while it still has the operator's rights.
#pragma once

#include <vector>

#include "base/result.h"
#include "daemon/config.h"
#include "egress/secrets.h"

namespace coffer::daemon {

// With what their secret files hold. None if there is no configuration file.
Result<std::vector<egress::EgressReceiver>> LoadReceivers(const Config& config);

}  // namespace coffer::daemon
