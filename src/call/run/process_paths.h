// SPDX-License-Identifier: Apache-2.0
//
// At the process level there is no private root: the paths of a call are those of the host.
#pragma once

#include <string>

#include "isolation/call_block.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::call {

// The well-known places (/workspace, /tmp, /in) are below the scratch directory.
void MoveToScratch(const std::string& scratch, isolation::Call& call);

// A program is where the host has it, whatever it would be called inside.
void UseHostPath(const isolation::RuntimeSet& runtime, isolation::Call& call);

}  // namespace coffer::call
