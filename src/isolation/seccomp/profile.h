// SPDX-License-Identifier: Apache-2.0
//
// A Profile says which system calls a boundary may make, by name, as a plain value.
//
// Rules are tried in order; the first one whose syscall matches and whose conditions all hold decides. A call that
// no rule matches gets `fallback`; a number newer than every name we know gets `beyond`. Nothing here knows numbers
// or BPF: see compile.h. A filter sees registers, never memory, so whatever hides behind a pointer (clone3, openat2)
// has to be refused whole.
#pragma once

#include <errno.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/envelope.h"

namespace coffer::isolation {

enum class ActionKind : uint8_t {
  kAllow,
  kNotify,  // the supervisor makes the call, if it is one that it serves; else it records it and answers EPERM
  kErrno,  // refused: the kernel answers `error` by itself, nothing is recorded
  kKill,   // the whole process dies with SIGSYS
};

struct Action {
  ActionKind kind = ActionKind::kNotify;
  uint16_t error = 0;  // for kErrno, up to 4095; 0: the call is not made, and answers that it was
  bool operator==(const Action&) const = default;
};

inline constexpr Action kAllow = {ActionKind::kAllow, 0};
inline constexpr Action kNotify = {ActionKind::kNotify, 0};
inline constexpr Action kKill = {ActionKind::kKill, 0};
constexpr Action FailWith(int error) { return {ActionKind::kErrno, static_cast<uint16_t>(error)}; }

inline constexpr Action kAsIfDone = FailWith(0);

enum class Compare : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

inline constexpr uint64_t kWholeArgument = ~uint64_t{0};
// The kernel takes many arguments as int and drops the upper half of the register, so a rule that looks at all
// 64 bits can be walked around by setting one of them.
inline constexpr uint64_t kLowHalf = 0xffffffff;

// (args[arg] & mask) <compare> value, unsigned.
struct Condition {
  uint8_t arg = 0;  // 0 to 5
  Compare compare = Compare::kEqual;
  uint64_t value = 0;
  uint64_t mask = kWholeArgument;
  bool operator==(const Condition&) const = default;
};

struct Rule {
  std::string syscall;
  Action action;
  std::vector<Condition> conditions;  // all must hold; none: always
  bool operator==(const Rule&) const = default;
};

struct Profile {
  Action fallback = kNotify;
  Action beyond = FailWith(ENOSYS);  // libc takes ENOSYS as "older kernel" and does without
  std::vector<Rule> rules;
};

inline constexpr uint32_t kUsualId = 1000;
inline constexpr uint32_t kEveryId = ~uint32_t{0};

// What the rest of the boundary makes safe to allow.
struct FilterOptions {
  bool inet_sockets =
      false;  // AF_INET, AF_INET6: only where the boundary has a network namespace of its own
  bool unix_sockets = false;  // socket(AF_UNIX); socketpair(AF_UNIX) is always allowed
  // Paths lead to sockets of the host: connect goes to the supervisor (connect_server.h), and there are no datagram
  // sockets, whose messages carry addresses that no filter sees. Only false where no such path exists.
  bool host_paths = true;
  // sysinfo goes to the supervisor, which answers with the boundary's own figures (sysinfo_server.h).
  bool own_figures = false;
  // An exclusive flock goes to the supervisor, which refuses it on files that may only be read (lock_server.h).
  bool own_locks = false;
  // The one user and group id that the boundary's user namespace has. Becoming another one is
  // EPERM, as for every ordinary user; the kernel would say EINVAL. kEveryId where there is no such
  // namespace.
  uint32_t own_id = kUsualId;
  bool operator==(const FilterOptions&) const = default;
};

// Every set of options as a number, for tables, which are made for kUsualId.
inline constexpr unsigned kFilterOptionSets = 32;
constexpr unsigned IndexOf(FilterOptions options) {
  return (options.inet_sockets ? 1U : 0U) + (options.unix_sockets ? 2U : 0U) +
         (options.host_paths ? 4U : 0U) + (options.own_figures ? 8U : 0U) +
         (options.own_locks ? 16U : 0U);
}
constexpr FilterOptions FilterOptionsOf(unsigned index) {
  return {.inet_sockets = (index & 1) != 0,
          .unix_sockets = (index & 2) != 0,
          .host_paths = (index & 4) != 0,
          .own_figures = (index & 8) != 0,
          .own_locks = (index & 16) != 0};
}

// The profile written in profiles.cc. `name` is kStrict, kDefault or kCompat; kImported has no text of its own and
// gives a profile that allows nothing.
Profile BuiltinProfile(policy::SyscallProfile name, FilterOptions options);

// Whether kCompat allows this call with arguments with which `name` refuses it: if not, no other profile helps.
bool CompatAllowsMore(std::string_view syscall, policy::SyscallProfile name);

// The names refused by every profile whatever the options, in table order (for tests and documentation).
std::vector<std::string> NeverAllowed();

}  // namespace coffer::isolation
