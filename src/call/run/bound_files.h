// SPDX-License-Identifier: Apache-2.0
//
// The files of the host that a call was shown: the list in the receipt, and the worst case that follows from it.
//
// Both come from one list of what was opened and examined, not from the flags, so an input, a script, a program or a
// virtual environment of the caller's shows up like a mount does. Only files of a runtime are ever summarised: those of
// the system, and the caller's own beyond kMostRuntimeFiles. Mounts, inputs, scripts and directories never are.
#pragma once

#include "audit/receipt.h"
#include "call/run/prepare.h"

namespace coffer::call {

// Single files of the caller's own that a command brings with it, listed one by one: the most in the list, and the most
// in the sentence. Both say how many more there are. A receipt with as many paths as this stays below a megabyte.
inline constexpr size_t kMostRuntimeFiles = 1024;
inline constexpr size_t kMostFilesNamed = 64;

// Fills receipt.bound and receipt.blast_radius. The system's own files are one entry, with their number.
void DescribeBound(const RunRequest& request, const Prepared& prepared, audit::Receipt& receipt);

}  // namespace coffer::call
