// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "isolation/child/init.h"

namespace coffer::isolation {

using raw::Arg;
using raw::Syscall;

// While the descriptor table is shared, our copy of the supervisor's end keeps the control socket
// open, so its death does not show there: its pidfd tells.
long AwaitWord(char expected, int control, int supervisor) {
  pollfd waits[2] = {{control, POLLIN, 0}, {supervisor, POLLIN, 0}};
  char word = 0;
  for (;;) {
    const long got = Syscall(SYS_recvfrom, control, Arg(&word), 1, MSG_DONTWAIT, 0, 0);
    if (got != -EAGAIN && got != -EINTR) {
      return got < 0 ? got : (got == 1 && word == expected ? 0 : -EPIPE);
    }
    const long ready = Syscall(SYS_ppoll, Arg(waits), 2, 0, 0, 0);
    if (ready < 0 && ready != -EINTR) {
      return ready;
    }
    if (ready > 0 && waits[1].revents != 0) {
      return -EPIPE;
    }
  }
}

long OpenPty(ChildReport* report) {
  const long master =
      Syscall(SYS_openat, AT_FDCWD, Arg("/dev/pts/ptmx"), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) {
    return master;
  }
  report->pty_master = static_cast<int32_t>(master);
  int unlock = 0;
  long answer = Syscall(SYS_ioctl, master, TIOCSPTLCK, Arg(&unlock));
  if (answer >= 0) {
    // TIOCGPTPEER (Linux 4.13) opens the other end without a path, which could lead to another
    // devpts (ioctl_tty(2)).
    answer = Syscall(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    report->pty_slave = static_cast<int32_t>(answer);
  }
  return answer;
}

long KeepOnlyInitFds(const ChildContext& context, const int32_t (&stdio)[3], long extra) {
  // CLOSE_RANGE_UNSHARE (5.9) on an empty range copies the table; unshare(2) is refused by the filter already.
  long answer = Syscall(SYS_close_range, ~0U, ~0U, 2 /* CLOSE_RANGE_UNSHARE */);
  for (int i = 0; i < 3 && answer >= 0; ++i) {
    answer = Syscall(SYS_dup3, stdio[i], i, 0);
  }
  // One of the two may be where the other has to go: a free place first.
  long spare = -1;
  if (answer >= 0 && extra >= 0) {
    spare = answer = Syscall(SYS_fcntl, extra, F_DUPFD_CLOEXEC, kExtraFd + 1);
  }
  if (answer >= 0 && context.control != kControlFd) {
    answer = Syscall(SYS_dup3, context.control, kControlFd, O_CLOEXEC);
  }
  if (answer >= 0 && spare >= 0) {
    answer = Syscall(SYS_dup3, spare, kExtraFd, O_CLOEXEC);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_close_range, spare >= 0 ? kExtraFd + 1 : kControlFd + 1, ~0U, 0);
  }
  return answer < 0 ? answer : 0;
}

}  // namespace coffer::isolation
