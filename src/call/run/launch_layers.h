// SPDX-License-Identifier: Apache-2.0
//
// Compares the layers that a boundary promises with those that are active. A layer counts only if a probe from outside
// found it.
#pragma once

#include "base/result.h"
#include "call/run/launch.h"

namespace coffer::call {

// The layers that a boundary of this level should have. Block I/O is counted only where files of the host are shown.
policy::LayerSet PromisedLayers(policy::Level level, bool shows_host_files);

// Each layer that setup reports must be found by the probe from outside. If one is not, the call is refused and nothing
// runs.
Status CheckProbe(const Launched& launched);

// The floor is what the request demands.
Status CheckFloor(const RunRequest& request, const Launched& launched);

}  // namespace coffer::call
