// SPDX-License-Identifier: Apache-2.0
//
// What a proxy makes of the connections that it accepts, seen on the sockets themselves.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "egress/ca_stock.h"
#include "egress/proxy.h"
#include "egress/watched_stock.h"

namespace coffer::egress {
namespace {

struct Address {
  in_addr_t host = 0;
  in_port_t port = 0;
  bool operator==(const Address&) const = default;
};

template <typename Ask>
Address AddressOf(Ask ask, int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  return ask(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0
             ? Address{address.sin_addr.s_addr, address.sin_port}
             : Address{};
}

// The other end of `client`, which is in this process too; -1 if there is none.
int OtherEnd(int client) {
  const Address own = AddressOf(::getsockname, client);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    if (AddressOf(::getpeername, fd) == own) {
      return fd;
    }
  }
  return -1;
}

bool HoldsBack(int fd) {
  int on = -1;
  socklen_t size = sizeof(on);
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
  return on == 0;
}

UniqueFd Socket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

// An answer goes out in several writes. The kernel holds the second back until the first is acknowledged, and the other side
// acknowledges after 40 ms: each small answer took that long.
TEST(ProxyAccept, NoAnswerIsHeldBack) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  Listeners listeners;
  listeners.proxy = Socket();
  ASSERT_EQ(::bind(listeners.proxy.get(), where, size), 0);
  ASSERT_EQ(::listen(listeners.proxy.get(), 16), 0);
  ASSERT_EQ(::getsockname(listeners.proxy.get(), where, &size), 0);

  const std::unique_ptr<net::Loop> loop = net::MakeLoop();
  UpstreamTrust trust = UpstreamTrust::OfThisHost();
  CaStock authorities;
  WatchedStock watched;
  const policy::ParsedGrants nothing;
  const std::unique_ptr<Proxy> proxy =
      MakeProxy(
          *loop, nothing, trust, "", authorities, watched, AddressGuard({}, {}),
          [](const Traffic&) {}, [](const AccessNotice&) { return false; })
          .value();
  proxy->Serve(std::move(listeners));
  std::thread turns([&] { loop->Run(); });

  const UniqueFd client = Socket();
  ASSERT_EQ(::connect(client.get(), where, size), 0);
  // A greeting of SOCKS: it is answered, and the request that follows is waited for.
  const std::string_view greeting("\x05\x01\x00", 3);
  ASSERT_EQ(::send(client.get(), greeting.data(), greeting.size(), 0),
            static_cast<ssize_t>(greeting.size()));
  char answer[2];
  ASSERT_EQ(::recv(client.get(), answer, sizeof(answer), MSG_WAITALL), 2);
  const int accepted = OtherEnd(client.get());
  ASSERT_GE(accepted, 0);
  EXPECT_FALSE(HoldsBack(accepted));
  EXPECT_TRUE(HoldsBack(client.get())) << "what a socket does that nobody told otherwise";

  loop->Post([&] { proxy->Finish([&] { loop->Stop(); }); });
  turns.join();
}

}  // namespace
}  // namespace coffer::egress
