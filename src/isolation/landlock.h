// SPDX-License-Identifier: Apache-2.0
//
// Landlock: path rights that the kernel checks in addition to everything else, kept across execve, never removable.
//
// The newest ABI the kernel has is used: 1 filesystem, 2 refer, 3 truncate, 4 TCP ports, 5 device ioctl,
// 6 abstract-socket and signal scoping, 7 audit. Every right of that ABI is handled, so what no rule grants is
// denied. TCP bind and connect have no rule at all where the network is the host's; in a network namespace they are not
// handled, because its loopback is the boundary's own. Landlock does not see stat(2), UDP or unix path sockets: the
// private root, the network namespace and seccomp cover those.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace coffer::isolation {

// 0 if the kernel has no Landlock or it is switched off; -errno if the kernel did not say. Async-signal-safe.
int LandlockAbi();

namespace landlock {
inline constexpr uint64_t kExecute = 1ULL << 0;
inline constexpr uint64_t kWriteFile = 1ULL << 1;
inline constexpr uint64_t kReadFile = 1ULL << 2;
inline constexpr uint64_t kReadDir = 1ULL << 3;
inline constexpr uint64_t kRemoveDir = 1ULL << 4;
inline constexpr uint64_t kRemoveFile = 1ULL << 5;
inline constexpr uint64_t kMakeDir = 1ULL << 7;
inline constexpr uint64_t kMakeReg = 1ULL << 8;
inline constexpr uint64_t kMakeSock = 1ULL << 9;
inline constexpr uint64_t kMakeFifo = 1ULL << 10;
inline constexpr uint64_t kMakeSym = 1ULL << 12;
inline constexpr uint64_t kRefer = 1ULL << 13;     // ABI 2
inline constexpr uint64_t kTruncate = 1ULL << 14;  // ABI 3
inline constexpr uint64_t kIoctlDev = 1ULL << 15;  // ABI 5

inline constexpr uint64_t kRead = kReadFile | kReadDir;
inline constexpr uint64_t kChange =
    kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kMakeSym | kRefer | kTruncate;
// Reading, and execution where the envelope allows it.
constexpr uint64_t ReadAndMaybeExecute(bool execute) { return execute ? kRead | kExecute : kRead; }
// What may be done in a private, writable tmpfs: everything that cannot reach outside.
inline constexpr uint64_t kPrivateChange = kChange | kMakeSock | kMakeFifo;
}  // namespace landlock

struct LandlockRule {
  std::string path;  // as the child sees it when the rule is made
  uint64_t rights = 0;
  bool required = true;  // a path that is missing is an error, not a rule less
  int fd =
      -1;  // what the rule is about, if it was opened and checked before; `path` then only names it
};

// The steps of EnforceLandlock: a ruleset's descriptor, or -errno; a rule more, by `fd` if there is
// one and otherwise by `path`; and entering it, which closes the descriptor. `own_network`: TCP
// stays possible.
long MakeLandlockRuleset(int abi, bool own_network);
long AddLandlockRule(int abi, int ruleset, const char* path, int fd, uint64_t rights,
                     bool required);
long EnterLandlock(int ruleset);

// Makes the domain, without TCP, and enters it. Returns 0 or -errno; `failed_rule` then names the
// rule. Async-signal-safe. Needs no_new_privs. With abi 0 it does nothing and returns -ENOSYS.
long EnforceLandlock(int abi, std::span<const LandlockRule> rules, uint32_t* failed_rule);

}  // namespace coffer::isolation
