// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing the kernel's small control files, in three system calls each and without building an Error:
// on the hot path a missing file is an answer, not a failure. `dir` and `name` are as for openat(2). And when the counters of
// events need no look.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace coffer::limits {

// 0, or -errno. The value goes out in one write.
long WriteControl(int dir, const char* name, std::string_view value);

// The first `buffer.size()` bytes, or nothing. Control files of a few lines come whole in one read.
std::optional<std::string_view> ReadControl(int dir, const char* name, std::span<char> buffer);

// A file that holds one number. "max" and anything else is nothing.
std::optional<uint64_t> ReadNumber(int dir, const char* name);

// The number after `key` and `separator`s, on a line that starts with `key`; 0 if there is none.
uint64_t KeyedNumber(std::string_view text, std::string_view key, char separator = ' ');

// Pids with one character between them. Those that are 0, processes outside our pid namespace, are left out.
std::vector<pid_t> ParsePids(std::string_view text);

// The kernel invokes the OOM killer when a charge does not fit under the cap. Charges are at most a huge page (2 MiB,
// or 32 MiB with 16 KiB pages); so while the peak is below half the cap, and that half is larger than any charge, there
// was none. Spares a file on the way of every ordinary call.
constexpr bool OomPossible(uint64_t peak, uint64_t cap) {
  constexpr uint64_t kLargestCharge = 32ULL << 20;
  return peak >= cap / 2 || cap - peak <= kLargestCharge;
}

}  // namespace coffer::limits
