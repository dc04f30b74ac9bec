// SPDX-License-Identifier: Apache-2.0
//
// Pid 1 of a boundary: starts the payload, reaps whatever is left to it, forwards signals, reports, exits.
//
// When it exits, the kernel kills every process of its pid namespace. It holds no descriptor but the control
// socket, runs under the same Landlock domain, filter and identity as the payload, and is not dumpable.
#pragma once

#include "isolation/child/enter.h"

namespace coffer::isolation {

// The descriptors of init: the payload's stdio at 0, 1 and 2 until it runs, the control socket, and
// one more if its duty needs it.
inline constexpr int kControlFd = 3;
inline constexpr int kExtraFd = 4;

// How the boundary ends when the supervisor dies.
enum class InitEnding {
  kDie,           // init dies, and the pid namespace with it
  kKillReach,     // init kills whatever kill(-1) reaches from inside
  kKillChildren,  // init kills its children until there are none; kExtraFd is their list in /proc
};

struct InitDuty {
  InitEnding ending = InitEnding::kDie;
};

// Resets signals that our own parent ignored: CLONE_CLEAR_SIGHAND and execve leave them ignored.
void HeedEverySignal();

// Waits for its go on the control socket, runs the call that ends `plan`, exits.
[[noreturn]] void RunInit(const ChildContext& context, const PlanBlock& plan, const InitDuty& duty);

}  // namespace coffer::isolation
