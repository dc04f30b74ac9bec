// SPDX-License-Identifier: Apache-2.0
#include "isolation/unrouted_sends.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "isolation/child/confine.h"

namespace coffer::isolation {
namespace {

constexpr std::string_view kSnmp =
    "Ip: Forwarding DefaultTTL OutDiscards OutNoRoutes ReasmTimeout\n"
    "Ip: 2 64 7 12 9\n"
    "Udp: InDatagrams OutNoRoutes\n"
    "Udp: 1 99\n";

TEST(UnroutedSends, TheCounterIsFoundByItsName) {
  EXPECT_EQ(ParseOutNoRoutes(kSnmp), 12U);
  EXPECT_EQ(ParseOutNoRoutes6(
                "Ip6InReceives   \t5\nIp6OutNoRoutes                  \t18446744073709551615\n"),
            UINT64_MAX);
}

TEST(UnroutedSends, WhatIsNotThatTextIsNoNumber) {
  for (const std::string_view text :
       {"", "Ip:", "Ip: OutNoRoutes\n", "Ip: OutNoRoutes\nIp: \n", "Ip: OutNoRoutes\nIp: -1\n",
        "Ip: OutNoRoutes\nIp: 1x\n", "Ip: OutNoRoutes\nTcp: 1\n", "Udp: OutNoRoutes\nUdp: 1\n",
        "Ip: Forwarding\nIp: 1\n", "Ip: OutNoRoutes\nIp: 18446744073709551616\n"}) {
    EXPECT_FALSE(ParseOutNoRoutes(text)) << text;
  }
  for (const std::string_view text :
       {"", "Ip6OutNoRoutes", "Ip6OutNoRoutes \t\n", "Ip6OutNoRoutes x\n", "Ip6OutNoRoutesMore 1\n",
        "XIp6OutNoRoutes 1\n"}) {
    EXPECT_FALSE(ParseOutNoRoutes6(text)) << text;
  }
}

void SendTo(int family, int type, const char* address) {
  const UniqueFd socket(::socket(family, type | SOCK_CLOEXEC, 0));
  sockaddr_storage to{};
  socklen_t size = sizeof(sockaddr_in);
  if (family == AF_INET) {
    auto* four = reinterpret_cast<sockaddr_in*>(&to);
    four->sin_family = AF_INET;
    four->sin_port = htons(9);
    ::inet_pton(AF_INET, address, &four->sin_addr);
  } else {
    auto* six = reinterpret_cast<sockaddr_in6*>(&to);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(9);
    ::inet_pton(AF_INET6, address, &six->sin6_addr);
    size = sizeof(sockaddr_in6);
  }
  if (type == SOCK_STREAM) {
    (void)::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), size);
  } else {
    (void)::sendto(socket.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), size);
  }
}

// A process in a network of its own does `what` when it is told, and ends. The count before, and after its end.
template <typename What>
void CountAround(const What& what, uint64_t* before, uint64_t* after) {
  int made[2], go[2];
  ASSERT_EQ(::pipe2(made, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char word = 'n';
    if (::unshare((::geteuid() == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWNET) == 0) {
      const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      word = RaiseLoopback(socket.get()) >= 0 ? 'y' : 'n';
    }
    if (::write(made[1], &word, 1) == 1 && ::read(go[0], &word, 1) == 1) {
      what();
    }
    ::_exit(0);
  }
  char word = 0;
  ASSERT_EQ(::read(made[0], &word, 1), 1);
  Result<UnroutedSends> sends = UnroutedSends::Open(child);
  const std::optional<uint64_t> first = sends.ok() ? sends->Count() : std::nullopt;
  EXPECT_EQ(::write(go[1], "g", 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int fd : {made[0], made[1], go[0], go[1]}) {
    ::close(fd);
  }
  ASSERT_EQ(word, 'y') << "no network namespace";
  ASSERT_TRUE(first.has_value());
  const std::optional<uint64_t> last = sends->Count();
  ASSERT_TRUE(last.has_value()) << "the counters are gone with the process";
  *before = *first;
  *after = *last;
}

TEST(UnroutedSends, EverySendThatHasNoRouteIsCountedAlsoWhenTheProcessHasEnded) {
  uint64_t before = 1, after = 0;
  CountAround(
      [] {
        for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
          SendTo(AF_INET, type, "192.0.2.7");
          SendTo(AF_INET6, type, "2001:db8::7");
          SendTo(AF_INET6, type, "::ffff:192.0.2.7");
        }
        SendTo(AF_INET, SOCK_DGRAM, "224.0.0.251");
      },
      &before, &after);
  EXPECT_EQ(before, 0U);
  EXPECT_EQ(after, 7U);
}

TEST(UnroutedSends, TheLoopbackHasARoute) {
  uint64_t before = 1, after = 1;
  CountAround(
      [] {
        for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
          SendTo(AF_INET, type, "127.0.0.1");
          SendTo(AF_INET6, type, "::1");
        }
      },
      &before, &after);
  EXPECT_EQ(before, 0U);
  EXPECT_EQ(after, 0U);
}

TEST(UnroutedSends, AProcessThatIsGoneHasNoCounters) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(UnroutedSends::Open(child).ok());
  EXPECT_FALSE(UnroutedSends().Count());
}

}  // namespace
}  // namespace coffer::isolation
