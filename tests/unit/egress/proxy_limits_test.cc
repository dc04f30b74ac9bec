// SPDX-License-Identifier: Apache-2.0
//
// The limits of a rule hold for what goes through a proxy: each with a control below the limit.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <thread>

#include "egress/proxy.h"

namespace coffer::egress {
namespace {

using policy::EgressRule;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

UniqueFd Listener(uint16_t& port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(fd.get(), 16), 0);
  EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return fd;
}

UniqueFd ConnectTo(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

std::string ReadSome(int fd, size_t most) {
  std::string text(most, '\0');
  const ssize_t got = ::read(fd, text.data(), text.size());
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

// Until `size` bytes or the end.
std::string ReadAll(int fd, size_t size) {
  std::string text;
  for (std::string more; text.size() < size; text += more) {
    more = ReadSome(fd, size - text.size());
    if (more.empty()) {
      break;
    }
  }
  return text;
}

// A server that sends back what it gets, behind a proxy with one rule.
class ProxyLimits : public ::testing::Test {
 protected:
  void Start(EgressRule rule) {
    server_ = Listener(server_port_);
    echo_ = std::thread([this] {
      for (;;) {
        const int got = ::accept(server_.get(), nullptr, nullptr);
        if (got < 0) {
          return;
        }
        std::thread([client = UniqueFd(got), this] {
          for (std::string some; !(some = ReadSome(client.get(), 4096)).empty();) {
            const std::lock_guard lock(mutex_);
            echoed_ += some.size();
            (void)::send(client.get(), some.data(), some.size(), MSG_NOSIGNAL);
          }
        }).detach();
      }
    });
    rule.ports = {{server_port_, server_port_}};
    grants_.rules = {std::move(rule)};
    grants_.resolve["api.test"] = {policy::IpAddress::V4({127, 0, 0, 1})};
    grants_.addresses = {policy::ParseAddressRange("127.0.0.1/32").value()};
    loop_ = net::MakeLoop();
    UpstreamTrust trust = UpstreamTrust::OfThisHost();
    proxy_ = MakeProxy(
                 *loop_, grants_, trust, "", AddressGuard(grants_.addresses, {}),
                 [this](const Traffic& one) { log_.push_back(one); },
                 [](const AccessNotice&) { return false; })
                 .value();
    Listeners listeners;
    listeners.proxy = Listener(port_);
    proxy_->Serve(std::move(listeners));
    turns_ = std::thread([this] { loop_->Run(); });
  }
  // What was written down. Nothing goes on after it.
  const std::vector<Traffic>& End() {
    if (turns_.joinable()) {
      loop_->Post([this] { proxy_->Finish([this] { loop_->Stop(); }); });
      turns_.join();
      ::shutdown(server_.get(), SHUT_RDWR);
      echo_.join();
    }
    return log_;
  }
  void TearDown() override { End(); }
  // Of each connection, why it was refused; "" if it was not.
  std::set<std::string> ReasonsAtEnd() {
    std::set<std::string> reasons;
    for (const Traffic& one : End()) {
      reasons.insert(one.reason);
      EXPECT_EQ(one.allowed, one.reason.empty());
    }
    return reasons;
  }

  // A tunnel; its first line is "HTTP/1.1 200 ..." if it stands.
  UniqueFd Tunnel(std::string& answer) const {
    UniqueFd fd = ConnectTo(port_);
    const std::string to = "api.test:" + std::to_string(server_port_);
    const std::string head = "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n";
    EXPECT_EQ(::write(fd.get(), head.data(), head.size()), static_cast<ssize_t>(head.size()));
    answer = ReadSome(fd.get(), 4096);
    return fd;
  }
  static std::string Echo(int fd, size_t size) {
    const std::string text(size, 'x');
    (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    return ReadAll(fd, size);
  }
  size_t echoed() {
    const std::lock_guard lock(mutex_);
    return echoed_;
  }

  std::mutex mutex_;
  size_t echoed_ = 0;
  UniqueFd server_;
  uint16_t server_port_ = 0, port_ = 0;
  std::thread echo_, turns_;
  policy::ParsedGrants grants_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Proxy> proxy_;
  std::vector<Traffic> log_;
};

EgressRule AnyBytes() { return policy::ParseAllow("tcp://api.test:1").value(); }

TEST_F(ProxyLimits, WithoutLimitsNothingIsCounted) {
  Start(AnyBytes());
  std::string answer;
  const UniqueFd a = Tunnel(answer);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  const UniqueFd b = Tunnel(answer);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_EQ(Echo(a.get(), 100000).size(), 100000u);
}

TEST_F(ProxyLimits, Connections) {
  EgressRule rule = AnyBytes();
  rule.connections = 1;
  Start(rule);
  std::string answer;
  UniqueFd first = Tunnel(answer);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_EQ(Echo(first.get(), 10).size(), 10u);
  Tunnel(answer);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 429")) << answer;
  EXPECT_NE(answer.find("1 at a time"), std::string::npos) << answer;
  EXPECT_EQ(ReasonsAtEnd(), (std::set<std::string>{"", "its rule allows 1 at a time"}));
}

TEST_F(ProxyLimits, Rate) {
  EgressRule rule = AnyBytes();
  rule.rate = policy::ParseRate("2/h").value();
  Start(rule);
  std::string answer;
  for (const char* const expected : {"HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429"}) {
    Tunnel(answer);
    EXPECT_TRUE(answer.starts_with(expected)) << answer;
  }
}

TEST_F(ProxyLimits, BytesOut) {
  EgressRule rule = AnyBytes();
  rule.bytes_out = 1000;
  Start(rule);
  std::string answer;
  const UniqueFd first = Tunnel(answer);
  EXPECT_EQ(Echo(first.get(), 900).size(), 900u) << "the control";
  EXPECT_EQ(Echo(first.get(), 200), "") << "the connection ends";
  EXPECT_EQ(echoed(), 900u) << "nothing beyond the limit reaches the server";
  Tunnel(answer);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 429")) << answer;
  EXPECT_EQ(
      ReasonsAtEnd(),
      (std::set<std::string>{"the bytes that its rule allows one call are spent: 1000B out"}));
}

TEST_F(ProxyLimits, BytesIn) {
  EgressRule rule = AnyBytes();
  rule.bytes_in = 1000;
  Start(rule);
  std::string answer;
  const UniqueFd first = Tunnel(answer);
  EXPECT_EQ(Echo(first.get(), 900).size(), 900u) << "the control";
  EXPECT_LT(Echo(first.get(), 200).size(), 101u);
  Tunnel(answer);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 429")) << answer;
}

}  // namespace
}  // namespace coffer::egress
