// SPDX-License-Identifier: Apache-2.0
#include "limits/in_flight.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>

#include "base/sys.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kMostInFlight = 253;  // SCM_MAX_FD: descriptors in one message
// SCM_PIDFD (6.5): a payload that asks for it (SO_PASSPIDFD) makes every peek bring a descriptor along.
constexpr int kScmPidfd = 4;

}  // namespace

std::vector<UniqueFd> PeekAtFlights(int socket) {
  std::vector<char> data(1 << 18);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostInFlight * sizeof(int)) + 256> control{};
  iovec into{data.data(), data.size()};
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  std::vector<UniqueFd> fds;
  if (Syscall(SYS_recvmsg, socket, Arg(&message), MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
    return fds;
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET ||
        (part->cmsg_type != SCM_RIGHTS && part->cmsg_type != kScmPidfd)) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      UniqueFd owned(fd);
      // If the payload drops the message now, this copy is the last one, and closing it would wait
      // for the socket's data.
      const linger none{};
      (void)Syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, Arg(&none), sizeof(none));
      if (part->cmsg_type == SCM_RIGHTS) {
        fds.push_back(std::move(owned));
      }
    }
  }
  return fds;
}

}  // namespace coffer::limits
