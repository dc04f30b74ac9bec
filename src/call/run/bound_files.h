// SPDX-License-Identifier: Apache-2.0
//
// The files of the host that a call was shown: the list in the receipt, and the worst case that follows from it.
//
// Both come from what was opened and examined, not from the flags, so a program or virtual environment of the caller's
// shows up like a mount does.
#pragma once

#include "audit/receipt.h"
#include "call/run/prepare.h"

namespace coffer::call {

// Fills receipt.bound and receipt.blast_radius. The system's own files are one entry, with their number.
void DescribeBound(const RunRequest& request, const Prepared& prepared, audit::Receipt& receipt);

}  // namespace coffer::call
