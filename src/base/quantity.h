// SPDX-License-Identifier: Apache-2.0
//
// Sizes, durations and counts as people write them: "256MiB", "10s", "1.5h" is not one of them.
//
// Whole numbers with an optional unit; nothing negative, nothing that overflows, nothing that would mean
// "unlimited". A bare number is bytes or seconds. The error says which forms are accepted.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace coffer {

// "4096", "64KiB", "64K", "1MB" (decimal), "1MiB", "2GiB": 1 byte to 1 EiB.
Result<uint64_t> ParseSize(std::string_view text);

// "500ms", "10s", "2m", "1h", "10" (seconds): 1 ms to 366 days.
Result<Nanos> ParseDuration(std::string_view text);

// A count from 1 to 1,000,000.
Result<uint64_t> ParseCount(std::string_view text);

std::string FormatSize(uint64_t bytes);
std::string FormatDuration(Nanos duration);

}  // namespace coffer
