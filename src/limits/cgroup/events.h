// SPDX-License-Identifier: Apache-2.0
//
// When the kernel's event counters need no look.
#pragma once

#include <cstdint>

namespace coffer::limits {

// The kernel invokes the OOM killer when a charge does not fit under the cap. Charges are at most a huge page (2 MiB,
// or 32 MiB with 16 KiB pages); so while the peak is below half the cap, and that half is larger than any charge, there
// was none. Spares a file on the way of every ordinary call.
constexpr bool OomPossible(uint64_t peak, uint64_t cap) {
  constexpr uint64_t kLargestCharge = 32ULL << 20;
  return peak >= cap / 2 || cap - peak <= kLargestCharge;
}

}  // namespace coffer::limits
