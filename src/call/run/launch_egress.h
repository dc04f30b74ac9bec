// SPDX-License-Identifier: Apache-2.0
//
// Starts what a call with network needs beside its boundary: the egress process, and the variables and the resolver
// that lead programs to it. Afterwards it fills in the receipt. The certificates that programs trust are in
// launch_trust.h.
//
// Variables and resolver are a convenience, not the wall: a program that ignores them reaches
// nothing, because the boundary's network has a loopback and no route that leaves it.
#pragma once

#include "base/result.h"
#include "call/run/egress_process.h"
#include "call/run/run_call.h"
#include "call/run/run_request.h"
#include "isolation/call_block.h"
#include "isolation/plan.h"

namespace coffer::call {

// To both halves of `plan`, so it comes before init.
void AddResolver(isolation::BoundaryPlan& plan);
// Starts the process, or asks the daemon's role, and does not wait for it.
Result<EgressProcess> StartEgress(const RunRequest& request);

// The variables that lead programs to the proxy.
void SetProxyVariables(isolation::Call& call);

// For a boundary that is ready and has not started. The process is ready, and serves `listeners`.
Status OpenEgress(egress::Listeners listeners, EgressProcess& process);

// After the boundary's end and BeginEnd: the connections, the denials, and a note for each thing that was refused.
// An error if the process ended too early.
Status SettleEgress(EgressProcess& process, RunOutcome& outcome);

}  // namespace coffer::call
