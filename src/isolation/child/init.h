// SPDX-License-Identifier: Apache-2.0
//
// Pid 1 of a boundary: starts the payload, reaps whatever is left to it, forwards signals, reports, exits.
//
// When it exits, the kernel kills every process of its pid namespace. It holds no descriptor but the control
// socket, runs under the same Landlock domain, filter and identity as the payload, and is not dumpable.
#pragma once

#include "isolation/child/enter.h"

namespace coffer::isolation {

// The descriptors of init: the payload's stdio at 0, 1 and 2 until it runs, the control socket, and the `tasks` file of
// the memory cgroup if the payload joins it by itself.
inline constexpr int kControlFd = 3;
inline constexpr int kTasksFd = 4;

// Waits for the call on the control socket, runs it, exits. `payload_tasks` is kTasksFd or -1.
[[noreturn]] void RunInit(const ChildContext& context, int payload_tasks);

}  // namespace coffer::isolation
