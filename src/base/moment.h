// SPDX-License-Identifier: Apache-2.0
//
// A point in time as people write it.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace coffer {

// "2h" is two hours before `now`; "2026-01-31", "2026-01-31T12:00", "2026-01-31T12:00:00Z" are UTC.
Result<Nanos> ParseMoment(std::string_view text, Nanos now);

}  // namespace coffer
