// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/name.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include "base/hash.h"
#include "base/hex.h"
#include "base/sys.h"

namespace coffer::limits {
namespace {

constexpr std::string_view kPrefix = "coffer-";
constexpr std::string_view kSupervisor = "supervisor-";
constexpr std::string_view kTenant = "tenant-";
constexpr std::string_view kCalls = "calls-";
constexpr size_t kRandomDigits = 8;
constexpr size_t kDaemonDigits = 16;
constexpr int64_t kLatest = 1'000'000'000'000;  // milliseconds: thirty years of uptime

template <typename T>
bool TakeNumber(std::string_view& rest, T& number, int base = 10) {
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), number, base);
  if (problem != std::errc() || number <= 0) {
    return false;
  }
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return true;
}

bool TakeHex(std::string_view& rest, size_t digits) {
  const std::string_view taken = rest.substr(0, digits);
  rest.remove_prefix(taken.size());
  return taken.size() == digits && IsHex(taken);
}

bool Take(std::string_view& rest, std::string_view expected) {
  if (rest.substr(0, expected.size()) != expected) {
    return false;
  }
  rest.remove_prefix(expected.size());
  return true;
}

std::string DaemonOf(std::string_view state_dir) {
  const std::string hash = HashOf(state_dir);  // "sha256:..."
  return hash.substr(hash.find(':') + 1, kDaemonDigits);
}

}  // namespace

Result<std::string> NewCgroupName(uint64_t pid_namespace) {
  uint32_t random = 0;
  const long got = raw::Syscall(SYS_getrandom, raw::Arg(&random), sizeof(random), 0);
  if (got < 0) {
    return sys::ErrnoError("limits.random", "the kernel gives no randomness", got);
  }
  return fmt::format("{}{}-{}-{:x}-{:08x}", kPrefix, ::getpid(), pid_namespace,
                     std::chrono::duration_cast<std::chrono::milliseconds>(BootTime()).count(),
                     random);
}

std::string SupervisorLeafName(uint64_t pid_namespace) {
  return fmt::format("{}{}{}-{}", kPrefix, kSupervisor, ::getpid(), pid_namespace);
}

std::string TenantLevelName(uint64_t pid_namespace, std::string_view state_dir, uint32_t tenant) {
  return fmt::format("{}{}{}-{}-{}", kPrefix, kTenant, pid_namespace, DaemonOf(state_dir), tenant);
}

std::string CallsLevelName(uint64_t pid_namespace, std::string_view state_dir) {
  return fmt::format("{}{}{}-{}", kPrefix, kCalls, pid_namespace, DaemonOf(state_dir));
}

bool IsCallsLevelName(std::string_view name, uint64_t pid_namespace) {
  uint64_t made_in = 0;
  return Take(name, kPrefix) && Take(name, kCalls) && TakeNumber(name, made_in) &&
         made_in == pid_namespace && Take(name, "-") && TakeHex(name, kDaemonDigits) &&
         name.empty();
}

bool IsTenantLevelName(std::string_view name, uint64_t pid_namespace) {
  uint64_t made_in = 0;
  uint32_t tenant = 0;
  return Take(name, kPrefix) && Take(name, kTenant) && TakeNumber(name, made_in) &&
         made_in == pid_namespace && Take(name, "-") && TakeHex(name, kDaemonDigits) &&
         Take(name, "-") && TakeNumber(name, tenant) && name.empty();
}

std::optional<CgroupOwner> FindOwner(std::string_view name) {
  CgroupOwner owner;
  if (!Take(name, kPrefix)) {
    return std::nullopt;
  }
  const bool leaf = Take(name, kSupervisor);
  if (!TakeNumber(name, owner.pid) || !Take(name, "-") || !TakeNumber(name, owner.pid_namespace)) {
    return std::nullopt;
  }
  if (leaf) {
    return name.empty() ? std::optional(owner) : std::nullopt;
  }
  int64_t made = 0;
  if (!Take(name, "-") || !TakeNumber(name, made, 16) || made > kLatest) {
    return std::nullopt;
  }
  owner.made = std::chrono::milliseconds(made);
  if (!Take(name, "-") || !TakeHex(name, kRandomDigits) || !name.empty()) {
    return std::nullopt;
  }
  return owner;
}

}  // namespace coffer::limits
