// SPDX-License-Identifier: Apache-2.0
//
// The first half of a launch: a boundary of which nothing but the level, or only the envelope, is known. It holds no file
// of the caller and runs nothing until it was admitted and given a call, so it may be begun while the request is still
// being read and evaluated, and simply dropped if that ends in a refusal.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/run_request.h"
#include "call/watch.h"
#include "isolation/boundary.h"
#include "isolation/plan.h"

namespace coffer::call {

struct Begun {
  UniqueFd signals;                               // the signals we take from a descriptor
  std::unique_ptr<isolation::BoundaryPlan> plan;  // the boundary points to it
  UniqueFd devices;                               // the prepared /dev, if the plan has one
  SupervisorStdio ours;
  UniqueFd theirs[3];  // in the table that init shares until it is ready
  std::unique_ptr<isolation::Boundary> boundary;
};

// From here on signals come from the descriptor; init must be cloned later, and gets them unblocked.
Result<UniqueFd> CatchSignals();

// Clones an init before anything is known but the words of the command line, if these leave no doubt that it will be
// wanted: as root, with cgroups of v1, where it may share our memory (ADR 13), and at no level given by hand. Otherwise,
// and if it cannot be done, what is returned holds no boundary, and launch knows what to do about the reason.
Begun BeginUnread(std::span<const std::string_view> words, isolation::OwnMemory own);

// The same for a request that is known; and in any case the request's envelope becomes the first half of the plan.
// `begun` ends without a boundary if it must be begun by launch.
void BeginEarly(const RunRequest& request, Begun& begun);

// Clones init for the complete plan in `begun`, with room for the call's strings, and gives it its identity.
Status Begin(const RunRequest& request, size_t call_bytes, Begun& begun);

// The first half of the plan of a container, and with it the prepared /dev if there is one to be had.
isolation::BoundaryPlan BeginPlan(const RunRequest& request, bool privileged, UniqueFd& devices);

// The payload's stdio, into `begun`.
Status MakeStdio(bool tty, Begun& begun);

}  // namespace coffer::call
