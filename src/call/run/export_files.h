// SPDX-License-Identifier: Apache-2.0
//
// Handles the files in a call's workspace before it is removed: exports go into the receipt and the report, and a note
// tells the caller of files that were most likely meant for another place.
#pragma once

#include "call/run/launch.h"
#include "call/run/prepare.h"
#include "call/run/run_call.h"
#include "call/run/run_request.h"

namespace coffer::call {

// Once nothing of the boundary runs any more, and while its places are still there.
void ExportFiles(const RunRequest& request, const Prepared& prepared, const Launched& launched,
                 RunOutcome& outcome);

// `coffer run --rw . -- make`: the working directory is /workspace all the same, and what is
// written there is gone. One note if there are files, and a writable mount shows the directory that
// the caller is in.
void TellLostFiles(const RunRequest& request, const Prepared& prepared, const Launched& launched,
                   RunOutcome& outcome);

}  // namespace coffer::call
