// SPDX-License-Identifier: Apache-2.0
//
// The end of a call that exports files: from its workspace, before that is removed, into the receipt and the report.
#pragma once

#include "call/run/launch.h"
#include "call/run/prepare.h"
#include "call/run/run_call.h"
#include "call/run/run_request.h"

namespace coffer::call {

// Once nothing of the boundary runs any more, and while its places are still there.
void ExportFiles(const RunRequest& request, const Prepared& prepared, const Launched& launched,
                 RunOutcome& outcome);

}  // namespace coffer::call
