// SPDX-License-Identifier: Apache-2.0
//
// Names and numbers of system calls, generated at build time from libseccomp (see gen/main.cc), so that the program
// itself neither links libseccomp nor resolves names when it starts.
//
// Names are kept as offsets into one string: no pointers, hence nothing to relocate at load.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace coffer::isolation {

struct SyscallEntry {
  uint16_t number;
  uint16_t name_at;  // where the name starts in SyscallTable::names
  uint16_t name_size;
};

struct SyscallTable {
  uint32_t audit_arch = 0;  // AUDIT_ARCH_*
  bool has_x32 = false;     // numbers from 0x40000000 on are another ABI of the same architecture
  std::string_view names;
  std::span<const SyscallEntry> by_name;    // sorted by name
  std::span<const SyscallEntry> by_number;  // sorted by number

  std::string_view NameOf(const SyscallEntry& entry) const {
    return names.substr(entry.name_at, entry.name_size);
  }
  std::optional<uint32_t> Find(std::string_view name) const;
  std::string_view Find(uint32_t number) const;  // empty if there is none
  uint32_t highest() const { return by_number.empty() ? 0 : by_number.back().number; }
};

// The architecture this program was compiled for.
const SyscallTable& NativeSyscalls();

// "openat", or "" for a number this build does not know.
std::string_view SyscallName(int number);
// -1 for a name this build does not know.
int SyscallNumber(std::string_view name);

}  // namespace coffer::isolation
