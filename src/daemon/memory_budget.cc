// SPDX-License-Identifier: Apache-2.0
#include "daemon/memory_budget.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/sys.h"

namespace coffer::daemon {
namespace {

constexpr Nanos kLookEvery = std::chrono::milliseconds(20);

std::optional<uint64_t> ReadNumberAt(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

}  // namespace

MemoryBudget::MemoryBudget(uint64_t limit, Reader reader)
    : limit_(limit), reader_(std::move(reader)) {}

bool MemoryBudget::Past() {
  const int64_t now = BootTime().count();
  int64_t due = next_look_;
  // One thread looks and the others use what it saw.
  if (now < due || !next_look_.compare_exchange_strong(due, now + kLookEvery.count())) {
    return past_;
  }
  const std::optional<uint64_t> used = reader_();
  used_ = used.value_or(limit_);
  // Past the limit until an eighth is free again: it would go back and forth with every answer.
  const uint64_t enough = past_ ? limit_ - limit_ / 8 : limit_;
  past_ = !used || *used >= enough;
  return past_;
}

std::optional<uint64_t> ParseStatm(std::string_view statm, uint64_t page_bytes) {
  // size resident shared ...
  const size_t first = statm.find(' ');
  const size_t second = first == std::string_view::npos ? first : statm.find(' ', first + 1);
  if (second == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<uint64_t> resident = ReadNumberAt(statm.substr(first + 1));
  const std::optional<uint64_t> shared = ReadNumberAt(statm.substr(second + 1));
  if (!resident || !shared || *shared > *resident) {
    return std::nullopt;
  }
  return (*resident - *shared) * page_bytes;
}

std::optional<uint64_t> OwnMemory() {
  const Result<std::string> text = sys::ReadFile("/proc/self/statm");
  return text.ok() ? ParseStatm(*text, static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)))
                   : std::nullopt;
}

uint64_t BudgetWithin(std::optional<uint64_t> surrounding) {
  return surrounding ? std::min(kGatewayMemory, *surrounding / 4 * 3) : kGatewayMemory;
}

void KeepHeapSmall() {
  // Each arena keeps the memory freed in it (mallopt(3)). With one for each thread a large answer
  // would stay in all of them.
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);  // setting it keeps it from growing
  ::mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

void TrimHeap() { ::malloc_trim(0); }

}  // namespace coffer::daemon
