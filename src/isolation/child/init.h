// SPDX-License-Identifier: Apache-2.0
//
// Pid 1 of a boundary: starts the payload, reaps whatever is left to it, forwards signals, reports, exits.
//
// When it exits, the kernel kills every process of its pid namespace. It holds no descriptor but the control
// socket, runs under the same Landlock domain, filter and identity as the payload, and is not dumpable.
#pragma once

#include <cstddef>

#include "isolation/child/report.h"

namespace coffer::isolation {

// The descriptors of init: the payload's stdio at 0, 1 and 2 until it runs, and the control socket.
inline constexpr int kControlFd = 3;

// Waits for the call on the control socket, runs it, exits.
// `heap` is where the memory starts that is of no use to init once the payload runs, or null.
// `ends_all` is for the process level: when the supervisor dies, init kills whatever kill(-1) reaches from inside.
[[noreturn]] void RunInit(ChildReport* report, const CallBlock* call, size_t call_capacity,
                          int control, bool ends_all, char* heap);

}  // namespace coffer::isolation
