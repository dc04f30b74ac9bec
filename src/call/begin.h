// SPDX-License-Identifier: Apache-2.0
//
// The first half of a launch: a boundary of which only the envelope is known. It holds no file of the caller and runs
// nothing until it was admitted and given a call, so it may be begun while the request is still being evaluated, and
// simply dropped if that ends in a refusal.
#pragma once

#include <memory>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run_request.h"
#include "call/watch.h"
#include "isolation/boundary.h"
#include "isolation/plan.h"

namespace coffer::call {

struct Begun {
  std::unique_ptr<isolation::BoundaryPlan> plan;  // the boundary points to it
  SupervisorStdio ours;
  UniqueFd theirs[3];  // in the table that init shares until it is ready
  std::unique_ptr<isolation::Boundary> boundary;
};

// True if a container of this request can be begun before its plan is complete: then its init shares our memory, which
// takes root, and cgroups of v1, where the payload can join its memory cgroup without init.
bool CanBeginEarly(const RunRequest& request);

// Clones init for `begun.plan` and gives it its identity. `call_bytes` is room for the call's strings.
Status Begin(const RunRequest& request, size_t call_bytes, Begun& begun);

// The above for a request that can begin early.
Result<Begun> BeginEarly(const RunRequest& request);

}  // namespace coffer::call
