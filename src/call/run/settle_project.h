// SPDX-License-Identifier: Apache-2.0
//
// The end of a call's project: what was planted in it is set aside, and the caller is told what the command left, in
// notes, warnings and the receipt.
//
// Called once, when nothing of the call runs any more: what is set aside while a process of the call lives can be made again.
#pragma once

#include "base/result.h"
#include "call/run/prepare.h"
#include "call/run/run_call.h"
#include "call/run/run_request.h"

namespace coffer::call {

// `prepared` has a project. Fails if a name that runs code on this host could not be set aside; what could be told has
// been told all the same.
Status SettleProject(const RunRequest& request, Prepared& prepared, RunOutcome& outcome);

}  // namespace coffer::call
