// SPDX-License-Identifier: Apache-2.0
//
// How much memory the gateway may use. Past it no new work is taken of the keys whose unread answers
// and bodies fill it, well past it (an eighth more) of their tenants, and far past it (a quarter
// more) of no client. Requests already taken go on and free their memory.
//
// The budget is a fixed size, or three quarters of the tightest limit of the cgroups around the
// gateway, if that is less: the kernel would kill at the limit. What counts is the gateway's own
// anonymous memory. Page cache and the memory of boundaries count elsewhere. If the use cannot be
// read, it counts as past.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace coffer::daemon {

inline constexpr uint64_t kGatewayMemory = uint64_t{160} << 20;

class MemoryBudget {
 public:
  // Reads the use in bytes.
  using Reader = std::function<std::optional<uint64_t>()>;
  MemoryBudget(uint64_t limit, Reader reader);

  // Past from the limit on, until the use is below seven eighths of it. Reads at most every 20 ms. Thread-safe.
  bool Past();
  // As of the last look.
  bool WellPast() const { return past_ && used_ >= limit_ + limit_ / 8; }
  bool FarPast() const { return past_ && used_ >= limit_ + limit_ / 4; }
  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_; }

 private:
  const uint64_t limit_;
  const Reader reader_;
  std::atomic<int64_t> next_look_{0};
  std::atomic<uint64_t> used_{0};
  std::atomic<bool> past_{false};
};

// Anonymous memory of this process: resident without what is shared with files.
std::optional<uint64_t> OwnMemory();
// The size that `statm` (proc(5)) tells; nothing if it makes no sense.
std::optional<uint64_t> ParseStatm(std::string_view statm, uint64_t page_bytes);

// From the tightest limit (limits/cgroup/surrounding.h), if there is one.
uint64_t BudgetWithin(std::optional<uint64_t> surrounding);

// Small arenas, and large buffers that go back to the system when they are freed: else one flood would be held for
// ever. Before the first thread is made.
void KeepHeapSmall();
// Hands free memory back to the system.
void TrimHeap();

}  // namespace coffer::daemon
