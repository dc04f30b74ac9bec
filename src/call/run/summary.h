// SPDX-License-Identifier: Apache-2.0
//
// Fills the receipt from the results of the rungs. Only this file translates between mechanisms and the receipt's
// words.
#pragma once

#include "audit/receipt.h"
#include "call/run/launch.h"
#include "call/run/run_request.h"
#include "call/run/supervise.h"

namespace coffer::call {

void DescribeRequest(const RunRequest& request, audit::Receipt& receipt);
void DescribeIsolation(const RunRequest& request, const Launched& launched,
                       audit::Receipt& receipt);
// Whether the program looked for something outside, in a call without a network.
bool LookedOutside(const RunRequest& request, const isolation::DenialRecorder& denials);
// The limits of a call whose command was never started: nothing of them was used.
void DescribeNoStart(const RunRequest& request, audit::Receipt& receipt);
void DescribeEnd(const RunRequest& request, const isolation::Boundary& boundary, Watch& watch,
                 const WatchResult& watched, audit::Receipt& receipt);

}  // namespace coffer::call
