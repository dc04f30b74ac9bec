// SPDX-License-Identifier: Apache-2.0
//
// What the seccomp tests share: tables of both architectures, calls by name, and verdicts as words.
#pragma once

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isolation/seccomp/compile.h"
#include "isolation/seccomp/evaluator.h"
#include "isolation/seccomp/gen/libseccomp_table.h"
#include "isolation/seccomp/profile.h"

namespace coffer::isolation {

inline constexpr std::array<uint32_t, 2> kArches = {SCMP_ARCH_AARCH64, SCMP_ARCH_X86_64};
// Of an argument: the kernel looks at the lower half of many.
inline constexpr uint64_t kUpperHalf = 0xdead'beef'0000'0000;

inline const SyscallTable& TableFor(uint32_t arch) {
  static const LibseccompTable aarch64(SCMP_ARCH_AARCH64);
  static const LibseccompTable x86_64(SCMP_ARCH_X86_64);
  static const SyscallTable tables[] = {aarch64.table(), x86_64.table()};
  return tables[arch == SCMP_ARCH_X86_64 ? 1 : 0];
}

using Args = std::array<uint64_t, 6>;

inline seccomp_data Call(uint32_t audit_arch, uint32_t number, const Args& args = {}) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = audit_arch;
  for (size_t i = 0; i < args.size(); ++i) {
    data.args[i] = args[i];
  }
  return data;
}

// "allow", "notify", "kill", "errno 38".
inline std::string VerdictText(uint32_t verdict) {
  switch (verdict & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
      return "allow";
    case SECCOMP_RET_USER_NOTIF:
      return "notify";
    case SECCOMP_RET_KILL_PROCESS:
      return "kill";
    case SECCOMP_RET_ERRNO:
      return "errno " + std::to_string(verdict & SECCOMP_RET_DATA);
    default:
      return "unexpected " + std::to_string(verdict);
  }
}

inline std::string Verdict(std::span<const sock_filter> program, const seccomp_data& data) {
  const Result<uint32_t> verdict = Evaluate(program, data);
  return verdict.ok() ? VerdictText(*verdict) : "invalid program: " + verdict.error().message;
}

// What a Profile says, straight from its definition: the oracle for compiled programs.
inline bool Holds(const Condition& condition, const seccomp_data& data) {
  const uint64_t value = data.args[condition.arg] & condition.mask;
  switch (condition.compare) {
    case Compare::kEqual:
      return value == condition.value;
    case Compare::kNotEqual:
      return value != condition.value;
    case Compare::kLess:
      return value < condition.value;
    case Compare::kLessEqual:
      return value <= condition.value;
    case Compare::kGreater:
      return value > condition.value;
    case Compare::kGreaterEqual:
      return value >= condition.value;
  }
  return false;
}

class Oracle {
 public:
  Oracle(const Profile& profile, const SyscallTable& table) : profile_(profile), table_(table) {
    for (const Rule& rule : profile.rules) {
      if (const std::optional<uint32_t> number = table.Find(rule.syscall); number) {
        rules_[*number].push_back(&rule);
      }
    }
  }

  Action Decide(const seccomp_data& data) const {
    const auto number = static_cast<uint32_t>(data.nr);
    if (data.arch != table_.audit_arch || (table_.has_x32 && number >= 0x40000000)) {
      return kKill;
    }
    if (number > table_.highest()) {
      return profile_.beyond;
    }
    const auto found = rules_.find(number);
    if (found != rules_.end()) {
      for (const Rule* rule : found->second) {
        if (std::all_of(rule->conditions.begin(), rule->conditions.end(),
                        [&](const Condition& condition) { return Holds(condition, data); })) {
          return rule->action;
        }
      }
    }
    return profile_.fallback;
  }

 private:
  const Profile& profile_;
  const SyscallTable& table_;
  std::map<uint32_t, std::vector<const Rule*>> rules_;
};

}  // namespace coffer::isolation
