// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/syscall_table.h"

#include <algorithm>

namespace coffer::isolation {

std::optional<uint32_t> SyscallTable::Find(std::string_view name) const {
  const auto found = std::lower_bound(by_name.begin(), by_name.end(), name,
                                      [this](const SyscallEntry& entry, std::string_view wanted) {
                                        return NameOf(entry) < wanted;
                                      });
  if (found == by_name.end() || NameOf(*found) != name) {
    return std::nullopt;
  }
  return found->number;
}

std::string_view SyscallTable::Find(uint32_t number) const {
  const auto found = std::lower_bound(
      by_number.begin(), by_number.end(), number,
      [](const SyscallEntry& entry, uint32_t wanted) { return entry.number < wanted; });
  if (found == by_number.end() || found->number != number) {
    return {};
  }
  return NameOf(*found);
}

}  // namespace coffer::isolation
