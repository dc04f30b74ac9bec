// SPDX-License-Identifier: Apache-2.0
//
// Begins the boundary of a call while its command is still being looked up (ADR 54).
//
// Init needs the envelope alone to make its network and most of its root. So for a call that brings
// in nothing of the caller's, init is cloned first and works beside Prepare; the launch rung then
// hands it the rest. Nothing of the command runs before that, nor before a record is on disk. An
// attempt that fails is dropped: the launch rung makes its own, in the usual order, and its errors
// are the ones that are reported.
#pragma once

#include <signal.h>

#include <optional>

#include "call/run/caught_signals.h"
#include "call/run/launch.h"
#include "call/run/launch_cgroups.h"

namespace coffer::call {

// Destroying it ends init and removes the cgroup.
struct Begun {
  sigset_t mask{};        // of signals, as it was before
  CaughtSignals signals;  // since before the clone
  Cgroups cgroups;
  Launched launched;  // its plan has the first half
};

// Nothing for calls that do not begin ahead, and if it failed.
std::optional<Begun> BeginAhead(const RunRequest& request);

// A signal that came since ends this process as usual, after the boundary is gone. If the signal is
// ignored, the call goes on without the boundary begun ahead.
void HeedSignals(std::optional<Begun>& begun);

}  // namespace coffer::call
