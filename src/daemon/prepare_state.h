// SPDX-License-Identifier: Apache-2.0
//
// The state directory before the roles start: made, without links in its parts, and as root given to the gateway.
#pragma once

#include "base/result.h"
#include "daemon/config.h"

namespace coffer::daemon {

// kRefused, with what to do, if the gateway could not reach the directory.
Status PrepareState(const Config& config);

}  // namespace coffer::daemon
