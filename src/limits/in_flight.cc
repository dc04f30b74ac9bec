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
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace coffer::limits
