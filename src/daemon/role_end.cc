// SPDX-License-Identifier: Apache-2.0
#include "daemon/role_end.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/clock.h"
#include "base/sys.h"
#include "base/unique_fd.h"

namespace coffer::daemon {

std::optional<int> WaitForRoleEnd(pid_t child, std::chrono::milliseconds time) {
  constexpr timespec kPause{0, 5'000'000};
  const Nanos deadline = BootTime() + time;
  const UniqueFd pidfd(static_cast<int>(raw::Syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  int status = 0;
  for (;;) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      return status;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - BootTime()).count();
    if (left <= 0) {
      return std::nullopt;
    }
    // A pidfd says that a traced process has ended before its parent can wait for it: its tracer comes first (ptrace(2)).
    if (::poll(&ended, 1, static_cast<int>(std::max<long>(left, 1))) != 0) {
      (void)::nanosleep(&kPause, nullptr);
    }
  }
}

}  // namespace coffer::daemon
