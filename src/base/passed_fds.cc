// SPDX-License-Identifier: Apache-2.0
#include "base/passed_fds.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include <utility>

#include "base/sys.h"

namespace coffer {

namespace {

std::vector<UniqueFd> TakePassedFds(msghdr& header) {
  std::vector<UniqueFd> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

long SendWithFds(int socket, std::span<const std::byte> message, std::span<const int> fds,
                 int flags) {
  if (fds.size() > kMostPassedFds) {
    return -EINVAL;
  }
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassedFds * sizeof(int))] = {};
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  return raw::Syscall(SYS_sendmsg, socket, raw::Arg(&header), MSG_NOSIGNAL | flags);
}

MessageWithFds ReceiveWithFds(int socket, std::span<std::byte> room, int flags) {
  MessageWithFds received;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassedFds * sizeof(int))] = {};
  iovec part{room.data(), room.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  received.got = raw::Syscall(SYS_recvmsg, socket, raw::Arg(&header), MSG_CMSG_CLOEXEC | flags);
  if (received.got >= 0) {
    // First of all, whatever the message is: they are open here from now on.
    received.fds = TakePassedFds(header);
    received.cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  }
  return received;
}

long SendPassedFds(int socket, char word, std::span<const int> fds, int flags) {
  const long sent = SendWithFds(socket, std::as_bytes(std::span(&word, 1)), fds, flags);
  return sent < 0 ? sent : 0;
}

PassedFds ReceivePassedFds(int socket, int flags) {
  PassedFds received;
  MessageWithFds message =
      ReceiveWithFds(socket, std::as_writable_bytes(std::span(&received.word, 1)), flags);
  received.got = message.got;
  received.fds = std::move(message.fds);
  return received;
}

}  // namespace coffer
