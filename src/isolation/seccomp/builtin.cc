// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/builtin.h"

#include <array>

#include "isolation/seccomp/syscall_table.h"

namespace coffer::isolation {
namespace {

// Defines kSyscallNames, kSyscallsByName, kSyscallsByNumber, kAuditArch, kHasX32, kProgramN,
// kPrograms and kRolePrograms.
#include "isolation/seccomp/builtin.inc"

constexpr SyscallTable kNativeSyscalls = {kAuditArch, kHasX32, kSyscallNames, kSyscallsByName,
                                          kSyscallsByNumber};

}  // namespace

std::span<const sock_filter> BuiltinFilter(policy::SyscallProfile profile, FilterOptions options) {
  const auto row = static_cast<size_t>(profile);
  if (row >= kPrograms.size()) {
    return {};
  }
  return kPrograms[row][IndexOf(options)];
}

std::span<const sock_filter> RoleFilter(RoleKind kind) {
  static_assert(kRolePrograms.size() == kRoleKinds);
  const auto row = static_cast<size_t>(kind);
  return row < kRolePrograms.size() ? kRolePrograms[row] : std::span<const sock_filter>();
}

const SyscallTable& NativeSyscalls() { return kNativeSyscalls; }

std::string_view SyscallName(int number) {
  return number < 0 ? std::string_view() : kNativeSyscalls.Find(static_cast<uint32_t>(number));
}

int SyscallNumber(std::string_view name) {
  const std::optional<uint32_t> number = kNativeSyscalls.Find(name);
  return number ? static_cast<int>(*number) : -1;
}

}  // namespace coffer::isolation
