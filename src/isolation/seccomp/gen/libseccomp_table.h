// SPDX-License-Identifier: Apache-2.0
//
// A SyscallTable for any architecture, asked from libseccomp. For the generator and for tests; never for the program.
#pragma once

#include <linux/audit.h>
#include <seccomp.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "isolation/seccomp/syscall_table.h"

namespace coffer::isolation {

class LibseccompTable {
 public:
  // `arch` is SCMP_ARCH_AARCH64 or SCMP_ARCH_X86_64.
  explicit LibseccompTable(uint32_t arch) : arch_(arch) {
    constexpr int kEnd = 2048;  // far above the newest call
    for (int number = 0; number < kEnd; ++number) {
      char* name = ::seccomp_syscall_resolve_num_arch(arch, number);
      if (name == nullptr) {
        continue;
      }
      const std::string text = name;
      std::free(name);
      by_number_.push_back({static_cast<uint16_t>(number), static_cast<uint16_t>(names_.size()),
                            static_cast<uint16_t>(text.size())});
      names_ += text;
    }
    by_name_ = by_number_;
    std::sort(
        by_name_.begin(), by_name_.end(), [this](const SyscallEntry& a, const SyscallEntry& b) {
          return names_.substr(a.name_at, a.name_size) < names_.substr(b.name_at, b.name_size);
        });
  }

  SyscallTable table() const {
    const bool x86 = arch_ == SCMP_ARCH_X86_64;
    return {x86 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64, x86, names_, by_name_, by_number_};
  }

 private:
  uint32_t arch_;
  std::string names_;
  std::vector<SyscallEntry> by_name_;
  std::vector<SyscallEntry> by_number_;
};

}  // namespace coffer::isolation
