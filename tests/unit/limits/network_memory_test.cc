// SPDX-License-Identifier: Apache-2.0
#include "limits/network_memory.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace coffer::limits {
namespace {

TEST(NetworkMemory, CountsByProtocol) {
  constexpr std::string_view kText =
      "protocol  size sockets  memory press maxhdr  slab module     cl co\n"
      "TCPv6     2432      1       0   no     192   yes  kernel      y  y\n"
      "UNIX-STREAM 1152      7      -1   NI       0   yes  kernel      y  n\n"
      "UNIX      1152     20      -1   NI       0   yes  kernel      y  n\n"
      "UDP       1344      3       0   NI       0   yes  kernel      y  y\n"
      "TCP       2304      4       0   no     192   yes  kernel      y  y\n";
  const SocketsInUse in_use = ParseProtocols(kText);
  EXPECT_EQ(in_use.unix_sockets, 27U);
  EXPECT_EQ(in_use.tcp_sockets, 5U);
  EXPECT_EQ(ParseProtocols("").unix_sockets, 0U);
}

TEST(NetworkMemory, TcpThatNoDescriptorLeadsTo) {
  const std::string heading =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n";
  const auto line = [](const char* state, const char* queues, int inode) {
    return std::string("   1: 0100007F:A0B2 0100007F:1F90 ") + state + " " + queues +
           " 00:00000000 00000000     0        0 " + std::to_string(inode) + " 1 0 20 4 30 10 -1\n";
  };
  const std::string full = line("01", "00000000:00100000", 0);
  EXPECT_GE(ParseTcp(heading + full, {}), 2U << 20);
  EXPECT_GE(ParseTcp(heading + line("04", "00100000:00000000", 0), {}), 2U << 20) << "unsent";
  EXPECT_EQ(ParseTcp(heading + full + full, {}), 2 * ParseTcp(heading + full, {}));
  EXPECT_EQ(ParseTcp(heading + line("01", "00000000:00000000", 0), {}), 0U) << "empty";
  EXPECT_EQ(ParseTcp(heading + line("0A", "00000000:00000005", 0), {}), 0U) << "listening";
  EXPECT_EQ(ParseTcp(heading + line("01", "00000000:00100000", 77), {77}), 0U) << "asked already";
  EXPECT_GT(ParseTcp(heading + line("01", "00000000:00100000", 77), {78}), 0U);
  EXPECT_GE(ParseTcp(heading + line("01", "00000000:00000400", 0), {}), 2U << 20)
      << "tiny segments";
}

TEST(NetworkMemory, AClosedSenderIsCountedUntilItsMessageIsRead) {
  const uint64_t before = CountSockets("/proc", ::getpid())->unix_sockets;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  ASSERT_EQ(::send(ends[0], "x", 1, 0), 1);
  ::close(ends[0]);
  const uint64_t unread = CountSockets("/proc", ::getpid())->unix_sockets;
  EXPECT_GE(unread, before + 2);
  char byte = 0;
  ASSERT_EQ(::recv(ends[1], &byte, 1, 0), 1);
  ::close(ends[1]);
  // Other tests of this host make sockets too, so only that it went down can be told.
  EXPECT_LT(CountSockets("/proc", ::getpid())->unix_sockets, unread);
  EXPECT_FALSE(CountSockets("/nonexistent", 1));
  EXPECT_EQ(HiddenTcpBytes("/nonexistent", 1, {}), 0U) << "no such files: a kernel without TCP";
}

TEST(NetworkMemory, AConnectionThatIsNotAcceptedIsSeen) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), name, length), 0);
  ASSERT_EQ(::getsockname(listener.get(), name, &length), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const auto hidden = [] { return HiddenTcpBytes("/proc", ::getpid(), {}).value_or(0); };
  const uint64_t before = hidden();
  UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), name, length), 0);
  const std::string block(100000, 'x');
  ASSERT_GT(::send(client.get(), block.data(), block.size(), MSG_DONTWAIT), 0);
  client.Reset();
  EXPECT_GE(hidden(), before + 2 * block.size());
}

}  // namespace
}  // namespace coffer::limits
