// SPDX-License-Identifier: Apache-2.0
//
// How many files a writable place may hold if only its size was given: as many per byte as the defaults have, so that a
// project that fits by size also fits by number.
#pragma once

#include <algorithm>
#include <cstdint>

namespace coffer::policy {

constexpr uint64_t kBytesPerInode = 6400;
constexpr uint64_t kMostInodes = 1000000;

// At least `least`.
constexpr uint64_t InodesFor(uint64_t bytes, uint64_t least) {
  return std::max(least, std::min(bytes / kBytesPerInode, kMostInodes));
}

}  // namespace coffer::policy
