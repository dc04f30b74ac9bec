// SPDX-License-Identifier: Apache-2.0
#include "base/passed_fds.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer {

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

long SendPassedFds(int socket, char word, std::span<const int> fds, int flags) {
  if (fds.size() > kMostPassedFds) {
    return -EINVAL;
  }
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassedFds * sizeof(int))] = {};
  iovec part{&word, 1};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(fds.size_bytes());
  memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  const long sent = raw::Syscall(SYS_sendmsg, socket, raw::Arg(&header), MSG_NOSIGNAL | flags);
  return sent < 0 ? sent : 0;
}

PassedFds ReceivePassedFds(int socket, int flags) {
  PassedFds received;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassedFds * sizeof(int))] = {};
  iovec part{&received.word, 1};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  received.got = raw::Syscall(SYS_recvmsg, socket, raw::Arg(&header), MSG_CMSG_CLOEXEC | flags);
  if (received.got >= 0) {
    received.fds = TakePassedFds(header);
  }
  return received;
}

}  // namespace coffer
