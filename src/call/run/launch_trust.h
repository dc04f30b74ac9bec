// SPDX-License-Identifier: Apache-2.0
//
// The certificates that programs of a call trust, where they are not the host's alone: those of the
// host, of --upstream-ca, and of the boundary's own authority, in one file that is made for the
// call.
//
// Programs find it by variables, and in the places where they look without them: the file lies over
// the host's bundle there. The host's own file is not changed, and another boundary has another
// file.
#pragma once

#include <vector>

#include "base/result.h"
#include "call/run/egress_process.h"
#include "call/run/prepare.h"
#include "call/run/run_request.h"
#include "isolation/call_block.h"
#include "isolation/plan.h"

namespace coffer::call {

// The CA, which is known later than the rest.
struct TrustEnd {
  bool awaited = false;  // the certificate of the boundary's authority is put behind the others
  bool java = false;     // and in the store for Java
};

// Does nothing where the host's certificates are enough. Where it is known that requests are
// judged, it does not wait for the CA of `process`: the boundary makes its root meanwhile. Where
// the process must say whether they are, it waits, so it comes as late as it can: after the call's
// part of the plan is complete, and before it is sent.
Result<TrustEnd> AddTrust(const RunRequest& request, const Prepared& prepared,
                          EgressProcess& process, isolation::BoundaryPlan& plan,
                          isolation::Call& call);
// Waits for the CA: the ends of the files that hold it (Boundary::EndFiles).
Result<std::vector<isolation::PrivateFile>> AwaitTrust(const TrustEnd& end, EgressProcess& process);

}  // namespace coffer::call
