// SPDX-License-Identifier: Apache-2.0
#include "limits/in_flight.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace coffer::limits {
namespace {

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

size_t OwnDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

void SendDescriptor(int socket, int fd) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  char byte = 'x';
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
  ASSERT_EQ(::sendmsg(socket, &message, 0), 1);
}

// A payload can make every look bring a descriptor of a process along. None of them may stay.
TEST(InFlight, NoCopyStays) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd sender(ends[0]);
  const UniqueFd receiver(ends[1]);
  const int on = 1;
  const bool brings_pidfds =
      ::setsockopt(receiver.get(), SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on)) == 0;
  SendDescriptor(sender.get(), sender.get());
  const size_t before = OwnDescriptors();
  for (int look = 0; look < 50; ++look) {
    EXPECT_EQ(PeekAtFlights(receiver.get()).size(), 1U);
  }
  EXPECT_EQ(OwnDescriptors(), before);
  // The control: whoever looks without closing has one more for the descriptor and one for the process.
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ASSERT_EQ(::recvmsg(receiver.get(), &message, MSG_PEEK | MSG_CMSG_CLOEXEC), 1);
  EXPECT_EQ(OwnDescriptors(), before + (brings_pidfds ? 2 : 1));
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof(fd));
    ::close(fd);
  }
}

}  // namespace
}  // namespace coffer::limits
