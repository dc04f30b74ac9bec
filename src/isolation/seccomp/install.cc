// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/install.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

// Linux 5.19: once the supervisor has the call, only a fatal signal ends the wait. Without it every signal restarts
// the call, and each restart would be counted as another denial.
#ifdef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
constexpr long kWaitKillable = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
#else
constexpr long kWaitKillable = 1L << 5;
#endif

long Install(std::span<const sock_filter> program, long flags) {
  if (program.empty() || program.size() > BPF_MAXINSNS) {
    return -EINVAL;
  }
  sock_fprog request{};
  request.len = static_cast<unsigned short>(program.size());
  request.filter = const_cast<sock_filter*>(program.data());  // the kernel only reads it
  return raw::Syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, raw::Arg(&request));
}

}  // namespace

long InstallFilter(std::span<const sock_filter> program) {
  const long listener = Install(program, SECCOMP_FILTER_FLAG_NEW_LISTENER | kWaitKillable);
  if (listener != -EINVAL) {
    return listener;
  }
  return Install(program, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

bool CanWaitKillable() {
  // No program: flags that the kernel knows make it look for one, which is EFAULT.
  return raw::Syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                      SECCOMP_FILTER_FLAG_NEW_LISTENER | kWaitKillable, 0) == -EFAULT;
}

long InstallFilterUnrecorded(std::span<const sock_filter> program) {
  std::array<sock_filter, BPF_MAXINSNS> silent;  // 32 KiB of stack
  if (program.size() > silent.size()) {
    return -EINVAL;
  }
  std::transform(program.begin(), program.end(), silent.begin(), [](sock_filter line) {
    if (line.code == (BPF_RET | BPF_K) && line.k == SECCOMP_RET_USER_NOTIF) {
      line.k = SECCOMP_RET_ERRNO | EPERM;
    }
    return line;
  });
  return Install({silent.data(), program.size()}, 0);
}

}  // namespace coffer::isolation
