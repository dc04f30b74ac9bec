// SPDX-License-Identifier: Apache-2.0
//
// What the network refused to a call, for stderr: one line each, with the rule that would have allowed it. `coffer run` and
// `coffer call` print the same words.
#pragma once

#include <stddef.h>

#include <string>

#include "audit/receipt.h"

namespace coffer::call {

// Lines of a call at most. One more says how many there are beyond.
constexpr size_t kMostRefusalNotes = 10;

// "refused: TARGET: REASON; to allow it: FIX", printable.
std::string RefusalNote(const audit::Denial& denial);

}  // namespace coffer::call
