// SPDX-License-Identifier: Apache-2.0
//
// Identifiers that sort by time and cannot be guessed: UUID version 7 (RFC 9562), from getrandom(2).
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace coffer {

// Fails only if the kernel gives no randomness; then nothing may run.
Result<std::string> NewId(Nanos now = WallTime());

// Before every id made at or after `time`, and after those made at least a millisecond earlier.
std::string IdBound(Nanos time);

}  // namespace coffer
