// SPDX-License-Identifier: Apache-2.0
//
// The certificates that programs of a call trust, where they are not the host's alone: those of the host, of --upstream-ca, and of the
// boundary's own authority, in one file that is made for the call.
//
// Programs find it by variables, and in the places where they look without them: the file lies over the host's bundle there.
// The host's own file is not changed, and another boundary has another file.
#pragma once

#include "base/result.h"
#include "call/run/egress_process.h"
#include "call/run/prepare.h"
#include "call/run/run_request.h"
#include "isolation/call_block.h"
#include "isolation/plan.h"

namespace coffer::call {

// Does nothing where the host's certificates are enough. Waits for the CA of `process` where requests are judged, so it comes as late as
// it can: after the call's part of the plan is complete, and before it is sent.
Status AddTrust(const RunRequest& request, const Prepared& prepared, EgressProcess& process,
                isolation::BoundaryPlan& plan, isolation::Call& call);

}  // namespace coffer::call
