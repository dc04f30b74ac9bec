// SPDX-License-Identifier: Apache-2.0
//
// Chooses the seccomp filter of a call, and the system calls that the supervisor makes in its place.
//
// The profile is the envelope's. What the rest of the boundary makes safe widens it (a network and
// an IPC namespace of its own); directories of the host narrow it (connect_server.h, fallocate);
// the process level narrows it most (shared_host.h).
#pragma once

#include "base/result.h"
#include "call/run/launch.h"
#include "call/run/prepare.h"
#include "call/run/run_request.h"

namespace coffer::call {

bool HasWritableMount(const Prepared& prepared);

// Fills in the filters of launched.plan, whose level and Landlock ABI are final. asks_for_threads says that no cgroup
// counts them; it becomes false where the filter cannot ask.
Status ChooseFilter(const RunRequest& request, const Prepared& prepared, policy::Level level,
                    Launched& launched);

}  // namespace coffer::call
