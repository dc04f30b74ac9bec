// SPDX-License-Identifier: Apache-2.0
//
// The signals that the supervisor of a call takes from a descriptor: it forwards them to the command.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::call {

// From here on these signals are blocked and come from the descriptor. Init is cloned later and unblocks them.
Result<UniqueFd> CatchSignals();

}  // namespace coffer::call
