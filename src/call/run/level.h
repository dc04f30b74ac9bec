// SPDX-License-Identifier: Apache-2.0
//
// Which level a call runs at. `auto` takes the strongest the host offers. It falls to `process`
// only if the caller wrote a floor, and that floor demands nothing which only a container has.
// Without a floor the caller has not said that less is enough, and the call is refused. A note
// tells the caller of the fall. A level that the caller named is used, or the call is refused.
#pragma once

#include "call/run/launch.h"

namespace coffer::call {

// `options` but for their level. `begun` is a container that was begun early, or nothing.
Result<Launched> LaunchAtLevel(const RunRequest& request, const Prepared& prepared,
                               LaunchOptions options, Begun* begun);

}  // namespace coffer::call
