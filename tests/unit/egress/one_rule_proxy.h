// SPDX-License-Identifier: Apache-2.0
//
// A server and a proxy in front of it that has one rule.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <thread>

#include "egress/ca_stock.h"
#include "egress/proxy.h"
#include "egress/watched_stock.h"

namespace coffer::egress {

using policy::EgressRule;

inline sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline UniqueFd Listener(uint16_t& port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(fd.get(), 16), 0);
  EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return fd;
}

inline UniqueFd ConnectTo(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

inline std::string ReadSome(int fd, size_t most) {
  std::string text(most, '\0');
  const ssize_t got = ::read(fd, text.data(), text.size());
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

// Until `size` bytes or the end.
inline std::string ReadAll(int fd, size_t size) {
  std::string text;
  for (std::string more; text.size() < size; text += more) {
    more = ReadSome(fd, size - text.size());
    if (more.empty()) {
      break;
    }
  }
  return text;
}

class OneRuleProxy : public ::testing::Test {
 protected:
  // What the server does with one connection: it sends back what it gets.
  virtual void ServeOne(int client) {
    for (std::string some; !(some = ReadSome(client, 4096)).empty();) {
      const std::lock_guard lock(mutex_);
      echoed_ += some.size();
      (void)::send(client, some.data(), some.size(), MSG_NOSIGNAL);
    }
  }

  void Start(EgressRule rule, const ProxyTimes& times = {}) {
    server_ = Listener(server_port_);
    echo_ = std::thread([this] {
      for (;;) {
        const int got = ::accept(server_.get(), nullptr, nullptr);
        if (got < 0) {
          return;
        }
        {
          const std::lock_guard lock(mutex_);
          ++serving_;
        }
        std::thread([client = UniqueFd(got), this] {
          ServeOne(client.get());
          const std::lock_guard lock(mutex_);
          --serving_;
        }).detach();
      }
    });
    rule.ports = {{server_port_, server_port_}};
    grants_.rules = {std::move(rule)};
    grants_.resolve["api.test"] = {policy::IpAddress::V4({127, 0, 0, 1})};
    grants_.addresses = {policy::ParseAddressRange("127.0.0.1/32").value()};
    loop_ = net::MakeLoop();
    UpstreamTrust trust = UpstreamTrust::OfThisHost();
    proxy_ =
        MakeProxy(
            *loop_, grants_, trust, "", authorities_, watched_, AddressGuard(grants_.addresses, {}),
            [this](const Traffic& one) { log_.push_back(one); },
            [this](const AccessNotice& notice) { return Asked(notice); }, times)
            .value();
    Listeners listeners;
    listeners.proxy = Listener(port_);
    proxy_->Serve(std::move(listeners));
    turns_ = std::thread([this] { loop_->Run(); });
  }
  // On the loop: access is asked for. False: it cannot be.
  virtual bool Asked(const AccessNotice&) { return false; }

  // What was written down. Nothing goes on after it.
  const std::vector<Traffic>& End() {
    if (turns_.joinable()) {
      loop_->Post([this] { proxy_->Finish([this] { loop_->Stop(); }); });
      turns_.join();
      ::shutdown(server_.get(), SHUT_RDWR);
      echo_.join();
      for (int left = 1000; left > 0 && serving() > 0; --left) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
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
  size_t serving() {
    const std::lock_guard lock(mutex_);
    return serving_;
  }
  size_t echoed() {
    const std::lock_guard lock(mutex_);
    return echoed_;
  }

  std::mutex mutex_;
  size_t echoed_ = 0, serving_ = 0;
  UniqueFd server_;
  uint16_t server_port_ = 0, port_ = 0;
  std::thread echo_, turns_;
  policy::ParsedGrants grants_;
  CaStock authorities_;
  WatchedStock watched_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Proxy> proxy_;
  std::vector<Traffic> log_;
};

}  // namespace coffer::egress
