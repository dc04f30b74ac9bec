// SPDX-License-Identifier: Apache-2.0
//
// The runner's part of a receipt, as a value of the wire: how the call went, and nothing about who asked for what.
//
// A runner may have been broken into. So only the fields below cross, each within the bounds that a
// stored receipt has, and the reader (call/ladder.h) keeps its own identity, decision and
// arguments.
#pragma once

#include "audit/receipt.h"
#include "base/wire_bytes.h"

namespace coffer::call {

void WriteReceipt(WireWriter& writer, const audit::Receipt& receipt);
// What does not fit makes the reader incomplete.
audit::Receipt ReadReceipt(WireReader& reader);

}  // namespace coffer::call
