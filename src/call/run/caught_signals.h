// SPDX-License-Identifier: Apache-2.0
//
// The signals that the supervisor of a call takes from a descriptor and forwards to the command. Before the command
// runs, the signals that ask a program to end (base/ending_signals.h) end the start of the call.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::call {

struct CaughtSignals {
  UniqueFd all;
  UniqueFd ending;  // of the same, those that ask to end: a signal is read from one of the two
};

// From here on these signals are blocked and come from the descriptors. Init is cloned later and unblocks them.
Result<CaughtSignals> CatchSignals();

// Takes a signal that asks to end; 0 if none waits.
int TakeEndingSignal(const CaughtSignals& signals);

}  // namespace coffer::call
