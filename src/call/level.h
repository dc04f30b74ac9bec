// SPDX-License-Identifier: Apache-2.0
//
// Which level a call runs at. `auto` takes the strongest the host offers; falling to `process` is said aloud, and only
// if the floor allows it. A level that was named is that level or nothing.
#pragma once

#include "call/launch.h"

namespace coffer::call {

// `begun` is a container that was begun early, or nothing.
Result<Launched> LaunchAtLevel(const RunRequest& request, const Prepared& prepared, bool probe);

}  // namespace coffer::call
