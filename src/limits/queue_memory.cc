// SPDX-License-Identifier: Apache-2.0
#include "limits/queue_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

int SocketOption(int fd, int name) {
  int value = 0;
  socklen_t size = sizeof(value);
  return Syscall(SYS_getsockopt, fd, SOL_SOCKET, name, Arg(&value), Arg(&size)) == 0 ? value : -1;
}

// Datagrams without a byte are not in FIONREAD, and of other datagrams only the first is. So only a stream may say that
// its queue is empty.
bool HasUnreadFromClosed(int fd) {
  pollfd entry{fd, POLLRDHUP, 0};
  timespec now{};
  if (Syscall(SYS_ppoll, Arg(&entry), 1, Arg(&now), 0, 0) != 1) {
    return false;
  }
  int queued = 0;
  Syscall(SYS_ioctl, fd, FIONREAD, Arg(&queued));
  return queued > 0 || SocketOption(fd, SO_TYPE) != SOCK_STREAM;
}

}  // namespace

QueueMemory MeasurePipe(int fd) {
  QueueMemory memory;
  int queued = 0;
  const long answer = Syscall(SYS_ioctl, fd, FIONREAD, Arg(&queued));
  if (answer == 0 && queued == 0) {
    return memory;
  }
  const long capacity = answer == 0 ? Syscall(SYS_fcntl, fd, F_GETPIPE_SZ) : -1;
  memory.holds_nothing = fd >= 0 && answer == -EBADF;
  memory.bytes = capacity >= 0 ? static_cast<uint64_t>(capacity) : MostOfAQueue();
  return memory;
}

QueueMemory MeasureSocket(int fd) {
  QueueMemory memory;
  std::array<uint32_t, SK_MEMINFO_VARS> figures{};
  socklen_t size = sizeof(figures);
  const long answer =
      Syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_MEMINFO, Arg(figures.data()), Arg(&size));
  if (answer < 0) {
    memory.holds_nothing = fd >= 0 && answer == -EBADF;
    memory.bytes = MostOfAQueue();
    return memory;
  }
  memory.bytes = uint64_t{figures[SK_MEMINFO_RMEM_ALLOC]} + figures[SK_MEMINFO_WMEM_ALLOC] +
                 figures[SK_MEMINFO_FWD_ALLOC] + figures[SK_MEMINFO_BACKLOG] +
                 figures[SK_MEMINFO_OPTMEM];
  memory.family = SocketOption(fd, SO_DOMAIN);
  memory.unread_from_closed = memory.family == AF_UNIX && HasUnreadFromClosed(fd);
  return memory;
}

uint64_t MeasureEvents(int fd) {
  // What a reader would get: 16 bytes for each event, and its name, rounded up. The kernel has 64
  // for an event without a name, and with the longest twice of what is read.
  constexpr uint64_t kOfWhatIsRead = 4;
  int queued = 0;
  return Syscall(SYS_ioctl, fd, FIONREAD, Arg(&queued)) == 0 && queued > 0
             ? kOfWhatIsRead * static_cast<uint64_t>(queued)
             : 0;
}

uint64_t MostOfAQueue() {
  static const uint64_t most = [] {
    // SO_SNDBUF is at most twice wmem_max, and the last message may be as long as all before it.
    const uint64_t pipe = ReadNumber(AT_FDCWD, "/proc/sys/fs/pipe-max-size").value_or(0);
    const uint64_t sent = 4 * ReadNumber(AT_FDCWD, "/proc/sys/net/core/wmem_max").value_or(0);
    return std::max({uint64_t{1} << 20, pipe, sent});
  }();
  return most;
}

}  // namespace coffer::limits
