// SPDX-License-Identifier: Apache-2.0
#include "daemon/role.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/sys.h"
#include "isolation/landlock.h"
#include "isolation/seccomp/builtin.h"
#include "isolation/seccomp/install.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

Status Must(const char* what, long answer) {
  return answer < 0 ? Status(sys::ErrnoError("daemon.role", what, answer)) : Status();
}

Status LeaveIdentity(uid_t uid) {
  TRY(Must("cannot leave the groups", Syscall(SYS_setgroups, 0, 0)));
  TRY(Must("cannot leave the group", Syscall(SYS_setresgid, uid, uid, uid)));
  return Must("cannot leave the user", Syscall(SYS_setresuid, uid, uid, uid));
}

// While we still may: narrowing the bounding set takes a capability.
Status NarrowCapabilities() {
  for (int capability = 0; capability <= CAP_LAST_CAP + 24; ++capability) {
    const long dropped = Syscall(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (dropped == -EINVAL || dropped == -EPERM) {
      break;  // past the last one, or no right to narrow what we do not have
    }
  }
  return {};
}

Status LeaveCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return Must("cannot drop the capabilities", Syscall(SYS_capset, Arg(&header), Arg(none)));
}

}  // namespace

bool DieWith(pid_t parent) {
  // A parent that died before the signal was set sends none. Then we have another parent already.
  return Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) >= 0 && ::getppid() == parent;
}

bool KeepDescriptors(std::initializer_list<int> kept) {
  constexpr int kOutOfTheWay = 64;
  // In two steps: one may lie where another is to go.
  std::vector<int> moved;
  for (const int fd : kept) {
    const long high = Syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kOutOfTheWay);
    if (high < 0) {
      return false;
    }
    moved.push_back(static_cast<int>(high));
  }
  int place = kFirstKept;
  for (const int fd : moved) {
    if (Syscall(SYS_dup3, fd, place++, 0) < 0) {
      return false;
    }
  }
  return Syscall(SYS_close_range, place, ~0U, 0) >= 0;
}

Status EnforceWritesOnlyIn(const std::string& directory, const std::string& removes_in) {
  using isolation::LandlockRule;
  constexpr int kFileAbi = 3;  // the newest ABI that is about files alone
  constexpr int kRename = 2;   // before it no name can be moved to another directory
  const int abi = std::min(isolation::LandlockAbi(), kFileAbi);
  if (abi < kRename) {
    return {};
  }
  TRY(Must("cannot set no_new_privs", Syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  std::vector<LandlockRule> rules = {
      {"/", isolation::landlock::kRead, /*required=*/true, -1},
      {directory, isolation::landlock::kRead | isolation::landlock::kPrivateChange,
       /*required=*/true, -1}};
  if (!removes_in.empty()) {
    rules.push_back({removes_in, isolation::landlock::kRemoveFile, /*required=*/false, -1});
  }
  uint32_t failed = 0;
  return Must("cannot bound what the role writes", isolation::EnforceLandlock(abi, rules, &failed));
}

Status EnterRole(RoleKind kind) {
  const pid_t parent = ::getppid();
  if (kind != RoleKind::kWarden) {
    TRY(NarrowCapabilities());
    if (::geteuid() == 0) {
      TRY(LeaveIdentity(kind == RoleKind::kGateway    ? kGatewayUid
                        : kind == RoleKind::kCompiler ? kCompilerUid
                        : kind == RoleKind::kEgress   ? kEgressUid
                                                      : kCallEgressUid));
    }
    TRY(LeaveCapabilities());
    TRY(Must("cannot stop being dumpable", Syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)));
  }
  // A change of identity clears the parent-death signal.
  if (!DieWith(parent)) {
    return Internal("daemon.role", "the daemon ended while a role was starting");
  }
  if (kind != RoleKind::kWarden || ::geteuid() != 0) {
    TRY(Must("cannot set no_new_privs", Syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  }
  return Must("cannot install the role's filter",
              isolation::InstallFilterUnrecorded(isolation::RoleFilter(kind)));
}

}  // namespace coffer::daemon
