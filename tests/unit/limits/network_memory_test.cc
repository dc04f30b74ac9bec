// SPDX-License-Identifier: Apache-2.0
#include "limits/network_memory.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "base/unique_fd.h"
#include "tests/support/temp_dir.h"

namespace coffer::limits {
namespace {

TEST(NetworkMemory, CountsByProtocol) {
  constexpr std::string_view kText =
      "protocol  size sockets  memory press maxhdr  slab module     cl co\n"
      "TCPv6     2432      1       0   no     192   yes  kernel      y  y\n"
      "UNIX-STREAM 1152      7      -1   NI       0   yes  kernel      y  n\n"
      "UNIX      1152     20      -1   NI       0   yes  kernel      y  n\n"
      "UDP       1344      3       0   NI       0   yes  kernel      y  y\n"
      "TCP       2304      4      37   no     192   yes  kernel      y  y\n";
  const SocketsInUse in_use = ParseProtocols(kText);
  EXPECT_EQ(in_use.unix_sockets, 27U);
  EXPECT_EQ(in_use.tcp_sockets, 5U);
  EXPECT_EQ(in_use.tcp_pages_of_host, 37U);
  EXPECT_EQ(ParseProtocols("").unix_sockets, 0U);
  EXPECT_FALSE(ParseProtocols("TCP 2304 4 -1 NI\n").tcp_pages_of_host);
}

TEST(NetworkMemory, NetlinkQueuesAreSummed) {
  constexpr std::string_view kText =
      "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"
      "00000000fa63cb3c 0   0          00000000 0        0        0     2        0        4       "
      "\n"
      "000000009633475c 4   4294963200 00000440 212480   512      1     2        0        520     "
      "\n"
      "0000000096334760 0   17         00000000 8448     0        0     2        0        521     "
      "\n";
  EXPECT_EQ(ParseNetlink(kText), 212480U + 512 + 8448);
  EXPECT_EQ(ParseNetlink(""), 0U);
  EXPECT_FALSE(NetlinkBytes("/nonexistent", 1));
}

TEST(NetworkMemory, QueuesOfUdpAreSummed) {
  constexpr std::string_view kText =
      "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode ref pointer drops            \n"
      " 1234: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 "
      "4 2 00000000fa63cb3c 0\n"
      " 1235: 00000000:A001 0100007F:0009 01 00010001:00000300 00:00000000 00000000     0        0 "
      "5 2 00000000fa63cb3d 7\n";
  EXPECT_EQ(ParseUdp(kText), 0x10001U + 0x300);
  EXPECT_EQ(ParseUdp(""), 0U);
  EXPECT_FALSE(UncountedUdpBytes("/nonexistent", 1));
  const SocketsInUse in_use = ParseProtocols(
      "protocol  size sockets  memory press maxhdr  slab module\n"
      "UDPv6     1472      2      17   NI       0   yes  kernel\n"
      "UDP       1344      3      17   NI       0   yes  kernel\n");
  EXPECT_EQ(in_use.udp_sockets, 5U);
  EXPECT_EQ(in_use.udp_pages_of_host, 17U);
}

// By the count of the kernel, which no table of connections can exceed. Where there is none, nothing is bounded.
TEST(NetworkMemory, TheKernelsCountBoundsWhatTheTablesSeemToHold) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto processors = static_cast<uint64_t>(::sysconf(_SC_NPROCESSORS_CONF));
  SocketsInUse in_use;
  EXPECT_EQ(MostTcpBytes(in_use, "/nonexistent"), std::numeric_limits<uint64_t>::max());
  in_use.tcp_pages_of_host = 1000;
  EXPECT_EQ(MostTcpBytes(in_use, "/nonexistent"), 1000 * page + processors * (1UL << 20));
  test::TempDir proc;
  std::filesystem::create_directories(proc.path() + "/sys/net/core");
  std::ofstream(proc.path() + "/sys/net/core/mem_pcpu_rsv") << "1024\n";
  EXPECT_EQ(MostTcpBytes(in_use, proc.path()), 1000 * page + processors * 1024 * page);
}

// Connections that no process has accepted hold what the kernel says, and it says at least what they hold.
TEST(NetworkMemory, UnacceptedConnectionsAreInTheKernelsCount) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 64), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<UniqueFd> clients;
  uint64_t sent = 0;
  const std::string data(1 << 16, 'x');
  for (int i = 0; i < 32; ++i) {
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size);
    for (ssize_t put = 0; (put = ::send(client.get(), data.data(), data.size(), 0)) > 0;) {
      sent += static_cast<uint64_t>(put);
    }
    clients.push_back(std::move(client));
  }
  EXPECT_GT(sent, 1U << 20) << "NO-CONTROL";
  const std::optional<SocketsInUse> in_use = CountSockets("/proc", ::getpid());
  ASSERT_TRUE(in_use && in_use->tcp_pages_of_host);
  EXPECT_GE(MostTcpBytes(*in_use, "/proc"), sent) << "OPEN";
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
  // Other tests open and close sockets of this network too: far fewer in this moment than half of these.
  constexpr int kPairs = 400;
  const uint64_t before = CountSockets("/proc", ::getpid())->unix_sockets;
  std::vector<UniqueFd> receivers;
  for (int i = 0; i < kPairs; ++i) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd sender(ends[0]);
    receivers.emplace_back(ends[1]);
    ASSERT_EQ(::send(sender.get(), "x", 1, 0), 1);
  }
  const uint64_t unread = CountSockets("/proc", ::getpid())->unix_sockets;
  EXPECT_GE(unread, before + kPairs + kPairs / 2) << "receivers, and senders that are closed";
  for (const UniqueFd& receiver : receivers) {
    char byte = 0;
    ASSERT_EQ(::recv(receiver.get(), &byte, 1, 0), 1);
  }
  receivers.clear();  // each held its sender too
  const uint64_t closed = CountSockets("/proc", ::getpid())->unix_sockets;
  EXPECT_LE(closed, unread - kPairs - kPairs / 2) << "both are gone";
  EXPECT_FALSE(CountSockets("/nonexistent", 1));
  EXPECT_EQ(HiddenTcpBytes("/nonexistent", 1, {}), 0U) << "no such files: a kernel without TCP";
}

Nanos cpu_time{0};
// Each reading takes 3 ms, as far as the sampler can see.
Nanos Costly() { return cpu_time += std::chrono::milliseconds(3); }

// A reading that was expensive is not repeated at once; a cheap one is.
TEST(NetworkMemory, ReadingIsPacedByItsCost) {
  using std::chrono::milliseconds;
  test::TempDir proc;
  const std::string net = proc.path() + "/7/net";
  std::filesystem::create_directories(net);
  const auto write = [&](const char* queue) {
    std::ofstream(net + "/tcp") << "heading\n 0: 0 0 01 00000000:" << queue
                                << " 00:00000000 00000000 0 0 99 1\n";
  };
  HiddenTcp costly(Costly);
  HiddenTcp cheap(+[] { return Nanos(0); });
  const auto bytes = [&](HiddenTcp& tcp, Nanos now) { return tcp.Bytes(proc.path(), 7, {}, now); };
  write("00000000");
  EXPECT_EQ(bytes(costly, milliseconds(0)), 0U);
  EXPECT_EQ(bytes(cheap, milliseconds(0)), 0U);
  write("00100000");
  EXPECT_GT(bytes(cheap, milliseconds(1)), 0U) << "the control";
  EXPECT_EQ(bytes(costly, milliseconds(26)), 0U) << "what was read last";
  EXPECT_GT(bytes(costly, milliseconds(27)), 0U);
}

// What an unaccepted connection with `block` in it adds to what is hidden in this process's network.
uint64_t HiddenByAConnection(const std::string& block) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  if (::ioctl(listener.get(), SIOCSIFFLAGS, &loopback) != 0 ||
      ::bind(listener.get(), name, length) != 0 ||
      ::getsockname(listener.get(), name, &length) != 0 || ::listen(listener.get(), 8) != 0) {
    return 0;
  }
  const auto hidden = [] { return HiddenTcpBytes("/proc", ::getpid(), {}).value_or(0); };
  const uint64_t before = hidden();
  UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.get(), name, length) != 0 ||
      ::send(client.get(), block.data(), block.size(), MSG_DONTWAIT) <= 0) {
    return 0;
  }
  client.Reset();
  return hidden() - before;
}

// In a network of its own: in the host's, the connections of other programs come and go meanwhile.
TEST(NetworkMemory, AConnectionThatIsNotAcceptedIsSeen) {
  enum : int { kSeen, kNotSeen, kNoNetwork };
  const pid_t child = ::fork();
  if (child == 0) {
    const int own = CLONE_NEWNET | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
    if (::unshare(own) != 0) {
      ::_exit(kNoNetwork);
    }
    const std::string block(100000, 'x');
    ::_exit(HiddenByAConnection(block) >= 2 * block.size() ? kSeen : kNotSeen);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNoNetwork) {
    GTEST_SKIP() << "this host gives no network namespace";
  }
  EXPECT_EQ(WEXITSTATUS(status), kSeen);
}

}  // namespace
}  // namespace coffer::limits
