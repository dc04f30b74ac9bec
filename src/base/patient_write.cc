// SPDX-License-Identifier: Apache-2.0
#include "base/patient_write.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/ending_signals.h"
#include "base/sys.h"

namespace coffer::sys {
namespace {

using raw::Arg;
using raw::Syscall;

using Clock = std::chrono::steady_clock;

// Until `fd` may take something, or `wait` is over at `end`. After a refusal that is a short sleep,
// whatever poll says.
Status AwaitRoom(int fd, bool refused, const WriteWait& wait, Clock::time_point end) {
  pollfd ready[2] = {{refused ? -1 : fd, POLLOUT, 0}, {wait.wake, POLLIN, 0}};
  // Without a wait first: a signal that is pending does not lose what could have been written at
  // once.
  if (!refused && ::poll(ready, 1, 0) > 0) {
    return {};
  }
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, nullptr, &mask);
  mask = WithoutEndingSignals(mask);
  const bool bounded = wait.limit.count() >= 0;
  for (;;) {
    std::chrono::nanoseconds left = end - Clock::now();
    if (bounded && left.count() <= 0) {
      return ErrnoError("sys.write", "the other end does not read", -ETIMEDOUT);
    }
    if (refused) {
      left = std::chrono::milliseconds(5);
    }
    const timespec bound = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int found =
        ::ppoll(ready, 2, bounded || refused ? &bound : nullptr, wait.wake < 0 ? &mask : nullptr);
    if (found > 0 && ready[1].revents != 0) {
      return ErrnoError("sys.write", "cannot write", -EINTR);
    }
    if (found > 0 || (found == 0 && refused)) {
      return {};
    }
  }
}

}  // namespace

Status WritePatiently(int fd, std::string_view data, WriteWait wait) {
  struct stat info{};
  if (const long answer = Syscall(SYS_fstat, fd, Arg(&info)); answer < 0) {
    return ErrnoError("sys.write", "cannot write", answer);
  }
  if (S_ISREG(info.st_mode)) {
    return WriteAll(fd, data);
  }
  Clock::time_point end = Clock::now() + wait.limit;
  for (bool refused = false; !data.empty();) {
    TRY(AwaitRoom(fd, refused, wait, end));
    // A pipe with room takes PIPE_BUF bytes without waiting (pipe(7)). The descriptor is shared
    // with the caller, so O_NONBLOCK is not ours to set.
    const long size = static_cast<long>(std::min<size_t>(data.size(), PIPE_BUF));
    const long wrote = S_ISSOCK(info.st_mode) ? Syscall(SYS_sendto, fd, Arg(data.data()), size,
                                                        MSG_DONTWAIT | MSG_NOSIGNAL)
                                              : Syscall(SYS_write, fd, Arg(data.data()), size);
    if (wrote < 0 && wrote != -EAGAIN && wrote != -EINTR) {
      return ErrnoError("sys.write", "cannot write", wrote);
    }
    refused = wrote <= 0;
    if (!refused) {
      data.remove_prefix(static_cast<size_t>(wrote));
      end = Clock::now() + wait.limit;
    }
  }
  return {};
}

}  // namespace coffer::sys
