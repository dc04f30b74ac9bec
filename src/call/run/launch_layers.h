// SPDX-License-Identifier: Apache-2.0
//
// What a boundary promises, and whether it is seen to keep it: a layer counts when it was probed from outside.
#pragma once

#include "base/result.h"
#include "call/run/launch.h"

namespace coffer::call {

// What a boundary of this level should have. Block I/O is counted only where files of the host are shown.
policy::LayerSet PromisedLayers(policy::Level level, bool shows_host_files);

// What setup claims to have done must be seen from outside; if not, something is wrong, and nothing runs.
Status CheckProbe(const Launched& launched);

// The floor is what the request demands.
Status CheckFloor(const RunRequest& request, const Launched& launched);

}  // namespace coffer::call
