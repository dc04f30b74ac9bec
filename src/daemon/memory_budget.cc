// SPDX-License-Identifier: Apache-2.0
#include "daemon/memory_budget.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/sys.h"
#include "limits/cgroup/mounts.h"

namespace coffer::daemon {
namespace {

constexpr Nanos kLookEvery = std::chrono::milliseconds(20);

std::optional<uint64_t> ReadNumberAt(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

// "max" and v1's "no limit" (a number near 2^63) are none.
std::optional<uint64_t> ReadLimit(const std::string& file) {
  const Result<std::string> text = sys::ReadFile(file);
  const std::optional<uint64_t> number = text.ok() ? ReadNumberAt(*text) : std::nullopt;
  return number && *number < (uint64_t{1} << 60) ? number : std::nullopt;
}

}  // namespace

MemoryBudget::MemoryBudget(uint64_t limit, Reader reader)
    : limit_(limit), reader_(std::move(reader)) {}

bool MemoryBudget::Past() {
  const int64_t now = BootTime().count();
  int64_t due = next_look_;
  if (now < due || !next_look_.compare_exchange_strong(due, now + kLookEvery.count())) {
    return past_;
  }
  const std::optional<uint64_t> used = reader_();
  used_ = used.value_or(limit_);
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

std::optional<uint64_t> SurroundingLimitOf(std::string_view self_cgroup, std::string_view mountinfo,
                                           const std::string& root) {
  std::optional<uint64_t> tightest;
  const std::vector<limits::CgroupMount> mounts = limits::ParseMountinfo(mountinfo);
  const limits::ControllerBits memory = limits::Bit(limits::Controller::kMemory);
  for (const limits::Membership& member : limits::ParseSelfCgroup(self_cgroup)) {
    if (!member.v2 && (member.controllers & memory) == 0) {
      continue;
    }
    for (const limits::CgroupMount& mount : mounts) {
      if (mount.v2 != member.v2 || (!mount.v2 && (mount.controllers & memory) == 0)) {
        continue;
      }
      const char* const file = mount.v2 ? "/memory.max" : "/memory.limit_in_bytes";
      std::string dir = limits::DirInMount(mount, member.path);
      // Every cgroup above limits as well.
      while (dir.size() >= mount.mount_point.size() && dir.starts_with(mount.mount_point)) {
        if (const std::optional<uint64_t> limit = ReadLimit(root + dir + file)) {
          tightest = std::min(tightest.value_or(*limit), *limit);
        }
        dir.resize(std::max<size_t>(dir.rfind('/'), 0));
      }
    }
  }
  return tightest;
}

std::optional<uint64_t> SurroundingLimit() {
  const Result<std::string> self = sys::ReadFile("/proc/self/cgroup");
  const Result<std::string> mounts = sys::ReadFile("/proc/self/mountinfo");
  return self.ok() && mounts.ok() ? SurroundingLimitOf(*self, *mounts, "") : std::nullopt;
}

uint64_t BudgetWithin(std::optional<uint64_t> surrounding) {
  return surrounding ? std::min(kGatewayMemory, *surrounding / 4 * 3) : kGatewayMemory;
}

void KeepHeapSmall() {
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);  // setting it keeps it from growing
  ::mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

void TrimHeap() { ::malloc_trim(0); }

}  // namespace coffer::daemon
