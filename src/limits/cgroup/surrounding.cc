// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/surrounding.h"

#include <algorithm>
#include <charconv>

#include "base/sys.h"
#include "limits/cgroup/mounts.h"

namespace coffer::limits {
namespace {

// "max" and v1's "no limit" (a number near 2^63) are none.
std::optional<uint64_t> ReadLimit(const std::string& file) {
  const Result<std::string> text = sys::ReadFile(file);
  uint64_t number = 0;
  if (!text.ok() ||
      std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number < (uint64_t{1} << 60) ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> SurroundingMemoryOf(std::string_view self_cgroup,
                                            std::string_view mountinfo, const std::string& root) {
  std::optional<uint64_t> tightest;
  const std::vector<CgroupMount> mounts = ParseMountinfo(mountinfo);
  const ControllerBits memory = Bit(Controller::kMemory);
  for (const Membership& member : ParseSelfCgroup(self_cgroup)) {
    if (!member.v2 && (member.controllers & memory) == 0) {
      continue;
    }
    for (const CgroupMount& mount : mounts) {
      if (mount.v2 != member.v2 || (!mount.v2 && (mount.controllers & memory) == 0)) {
        continue;
      }
      const char* const file = mount.v2 ? "/memory.max" : "/memory.limit_in_bytes";
      std::string dir = DirInMount(mount, member.path);
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

std::optional<uint64_t> SurroundingMemoryOf(std::string_view self_cgroup) {
  const Result<std::string> mounts = sys::ReadFile("/proc/self/mountinfo");
  return mounts.ok() ? SurroundingMemoryOf(self_cgroup, *mounts, "") : std::nullopt;
}

std::optional<uint64_t> SurroundingMemory() {
  const Result<std::string> self = sys::ReadFile("/proc/self/cgroup");
  return self.ok() ? SurroundingMemoryOf(*self) : std::nullopt;
}

}  // namespace coffer::limits
