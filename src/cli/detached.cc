// SPDX-License-Identifier: Apache-2.0
#include "cli/detached.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "base/unique_fd.h"

namespace coffer::cli {

using raw::Syscall;

bool CloseAllBut(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (const int fd : kept) {
    if (fd < 3) {
      continue;
    }
    const auto at = static_cast<unsigned>(fd);
    if (at > from && Syscall(SYS_close_range, from, at - 1, 0) < 0) {
      return false;
    }
    from = at + 1;
  }
  return Syscall(SYS_close_range, from, ~0U, 0) >= 0;
}

bool PointAtNull(std::initializer_list<int> fds) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  return null && std::all_of(fds.begin(), fds.end(), [&](int fd) {
           return fd == null.get() || Syscall(SYS_dup3, null.get(), fd, 0) >= 0;
         });
}

}  // namespace coffer::cli
