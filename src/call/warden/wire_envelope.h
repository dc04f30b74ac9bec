// SPDX-License-Identifier: Apache-2.0
//
// An envelope as bytes, in a request (wire.h) and in the warden's table (table.h).
#pragma once

#include "base/wire_bytes.h"
#include "policy/envelope.h"

namespace coffer::call {

void WriteEnvelope(WireWriter& writer, const policy::Envelope& envelope);
// What does not fit shows in reader.Complete().
policy::Envelope ReadEnvelope(WireReader& reader);

void WriteLimits(WireWriter& writer, const policy::Limits& limits);
policy::Limits ReadLimits(WireReader& reader);
// True if no cap is missing and none is so large that arithmetic on it overflows.
bool AreUsable(const policy::Limits& limits);

}  // namespace coffer::call
