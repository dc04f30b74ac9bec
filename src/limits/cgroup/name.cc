// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/name.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include "base/sys.h"

namespace coffer::limits {
namespace {

constexpr std::string_view kPrefix = "coffer-";
constexpr std::string_view kSupervisor = "supervisor-";
constexpr size_t kRandomDigits = 8;
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

bool Take(std::string_view& rest, std::string_view expected) {
  if (rest.substr(0, expected.size()) != expected) {
    return false;
  }
  rest.remove_prefix(expected.size());
  return true;
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
  if (!Take(name, "-") || name.size() != kRandomDigits ||
      name.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  return owner;
}

}  // namespace coffer::limits
