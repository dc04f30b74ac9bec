// SPDX-License-Identifier: Apache-2.0
#include "isolation/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

// The kernel's own structures; Debian 12's headers know ABI 2 only.
struct RulesetAttr {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;  // ABI 4
  uint64_t scoped;              // ABI 6
};
struct __attribute__((packed)) PathBeneathAttr {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr unsigned kCreateRulesetVersion = 1;
constexpr int kRulePathBeneath = 1;
constexpr uint64_t kNetBindTcp = 1ULL << 0;
constexpr uint64_t kNetConnectTcp = 1ULL << 1;
constexpr uint64_t kScopeAbstractUnixSocket = 1ULL << 0;
constexpr uint64_t kScopeSignal = 1ULL << 1;

// Rights that apply to a file that is not a directory; others are refused with EINVAL.
constexpr uint64_t kFileRights = landlock::kExecute | landlock::kWriteFile | landlock::kReadFile |
                                 landlock::kTruncate | landlock::kIoctlDev;

uint64_t HandledFs(int abi) {
  // The thirteen rights of ABI 1.
  uint64_t rights = (1ULL << 13) - 1;
  if (abi >= 2) {
    rights |= landlock::kRefer;
  }
  if (abi >= 3) {
    rights |= landlock::kTruncate;
  }
  if (abi >= 5) {
    rights |= landlock::kIoctlDev;
  }
  return rights;
}

}  // namespace

int LandlockAbi() {
  const long abi = Syscall(SYS_landlock_create_ruleset, 0, 0, kCreateRulesetVersion);
  return abi == -ENOSYS || abi == -EOPNOTSUPP ? 0 : static_cast<int>(abi);
}

long AddLandlockRule(int abi, int ruleset, const char* path, int given, uint64_t rights,
                     bool required) {
  const long fd = given >= 0 ? Syscall(SYS_fcntl, given, F_DUPFD_CLOEXEC, 3)
                             : Syscall(SYS_openat, AT_FDCWD, Arg(path), O_PATH | O_CLOEXEC);
  if (fd < 0) {
    return fd == -ENOENT && !required ? 0 : fd;
  }
  PathBeneathAttr attr{rights & HandledFs(abi), static_cast<int32_t>(fd)};
  long answer = 0;
  if (attr.allowed_access != 0) {
    answer = Syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, Arg(&attr), 0);
  }
  if (answer == -EINVAL && (attr.allowed_access & ~kFileRights) != 0) {
    // Not a directory, and most rules are about one: asking first would cost each of them a call.
    attr.allowed_access &= kFileRights;
    answer = attr.allowed_access == 0
                 ? 0
                 : Syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, Arg(&attr), 0);
  }
  ::close(static_cast<int>(fd));
  return answer;
}

long MakeLandlockRuleset(int abi, bool own_network) {
  if (abi <= 0) {
    return -ENOSYS;
  }
  RulesetAttr attr{HandledFs(abi), 0, 0};
  // With a network namespace of its own there is nothing to refuse: TCP reaches the boundary's
  // loopback only.
  if (abi >= 4 && !own_network) {
    attr.handled_access_net = kNetBindTcp | kNetConnectTcp;
  }
  if (abi >= 6) {
    attr.scoped = kScopeAbstractUnixSocket | kScopeSignal;
  }
  return Syscall(SYS_landlock_create_ruleset, Arg(&attr), sizeof(attr), 0);
}

long EnterLandlock(int ruleset) {
  const long answer = Syscall(SYS_landlock_restrict_self, ruleset, 0);
  ::close(ruleset);
  return answer;
}

long EnforceLandlock(int abi, std::span<const LandlockRule> rules, uint32_t* failed_rule) {
  const long made = MakeLandlockRuleset(abi, false);
  if (made < 0) {
    return made;
  }
  const int ruleset = static_cast<int>(made);
  for (size_t i = 0; i < rules.size(); ++i) {
    *failed_rule = static_cast<uint32_t>(i);
    const LandlockRule& rule = rules[i];
    const long answer =
        AddLandlockRule(abi, ruleset, rule.path.c_str(), rule.fd, rule.rights, rule.required);
    if (answer < 0) {
      ::close(ruleset);
      return answer;
    }
  }
  return EnterLandlock(ruleset);
}

}  // namespace coffer::isolation
