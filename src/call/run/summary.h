// SPDX-License-Identifier: Apache-2.0
//
// Fills the receipt from the results of the rungs. Only this file translates between mechanisms and the receipt's
// words.
#pragma once

#include <string>

#include "audit/receipt.h"
#include "call/run/launch.h"
#include "call/run/outside_tries.h"
#include "call/run/run_request.h"
#include "call/run/supervise.h"

namespace coffer::call {

// One of the closed set of the receipt: what is not a surface of its own is internal.
std::string ErrorClassOf(const Error& error);
void DescribeRequest(const RunRequest& request, audit::Receipt& receipt);
void DescribeIsolation(const RunRequest& request, const Launched& launched,
                       audit::Receipt& receipt);
// A call that is not started because its network was refused as a whole: a denial, like those of single hosts.
void DescribeRefusedNetwork(const RunRequest& request, const Error& error, audit::Receipt& receipt);
// The limits of a call whose command was never started: nothing of them was used.
void DescribeNoStart(const RunRequest& request, audit::Receipt& receipt);
void DescribeEnd(const RunRequest& request, const isolation::Boundary& boundary,
                 Supervision& supervision, const SupervisionResult& ended,
                 const OutsideTries& outside, audit::Receipt& receipt);

}  // namespace coffer::call
