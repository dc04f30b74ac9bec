// SPDX-License-Identifier: Apache-2.0
//
// /healthz is answered by a thread of its own: while the loop is stuck, while no more connections are taken, and it tells.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <future>
#include <vector>

#include "tests/gateway/harness.h"
#include "tests/support/run.h"

namespace coffer::gateway {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

ServerConfig SoonStale() {
  ServerConfig config;
  config.http.limits.loop_stale = milliseconds(2000);
  return config;
}

Reply1 Ask(uint16_t port, const std::string& path) {
  RawClient client = RawClient::Tcp(port);
  client.Send(Request("GET", path));
  return client.Receive();
}

// Keeps the loop from turning until it is destroyed.
class Stuck {
 public:
  explicit Stuck(RunningServer& server) : released_(release_.get_future().share()) {
    std::promise<void> begun;
    server.loop().Post([&begun, released = released_] {
      begun.set_value();
      released.wait();
    });
    begun.get_future().wait();
  }
  ~Stuck() { release_.set_value(); }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_;
};

TEST(Health, AnswersWhileTheLoopIsStuckAndThenSaysSo) {
  RunningServer server(SoonStale());
  ASSERT_EQ(Ask(server.port(), "/healthz").status, 200);
  {
    const Stuck stuck(server);
    const auto asked = Clock::now();
    EXPECT_EQ(Ask(server.port(), "/healthz").status, 200) << "busy is not stuck";
    EXPECT_LT(Clock::now() - asked, milliseconds(1000));
    EXPECT_TRUE(test::WaitUntil([&] { return Ask(server.port(), "/healthz").status == 503; }));
    EXPECT_NE(Ask(server.port(), "/healthz").body.find("stuck"), std::string::npos);
    RawClient other = RawClient::Tcp(server.port());
    other.Send(Request("GET", "/openapi.json"));
    pollfd answered{other.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&answered, 1, 300), 0) << "the control: the loop answers nothing";
  }
  EXPECT_TRUE(test::WaitUntil([&] { return Ask(server.port(), "/healthz").status == 200; }))
      << "it recovers";
}

TEST(Health, AnswersWhenNoMoreConnectionsAreTaken) {
  ServerConfig config;
  config.http.limits.connections = 2;
  RunningServer server(config);
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(RawClient::Tcp(server.port()));
    clients.back().Send(Request("GET", "/openapi.json"));
    ASSERT_EQ(clients.back().Receive().status, 200);
  }
  EXPECT_EQ(Ask(server.port(), "/openapi.json").status, 503) << "the control";
  EXPECT_EQ(Ask(server.port(), "/healthz").status, 200);
}

TEST(Health, OneConnectionMayAskForOtherThingsToo) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  for (int i = 0; i < 3; ++i) {
    client.Send(Request("GET", "/healthz"));
    EXPECT_EQ(client.Receive().status, 200);
  }
  client.Send(Request("GET", "/healthz") + Request("GET", "/openapi.json") +
              Request("GET", "/healthz"));
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_NE(client.Receive().body.find("openapi"), std::string::npos);
  EXPECT_EQ(client.Receive().status, 200);
}

TEST(Health, WhatIsNotAPlainProbeGetsTheSameWordsAsElsewhere) {
  RunningServer server;
  RawClient strange = RawClient::Tcp(server.port());
  strange.Send("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(strange.Receive().status, 421);
  RawClient body = RawClient::Tcp(server.port());
  body.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_EQ(body.Receive().Code(), "body.unexpected");
  RawClient longer = RawClient::Tcp(server.port());
  longer.Send(Request("GET", "/healthzz"));
  EXPECT_EQ(longer.Receive().status, 404);
}

TEST(Health, AListenerForProbesAnswersNothingElse) {
  ServerConfig config;
  config.tcp.emplace_back();
  config.health.emplace_back();
  RunningServer server(config);
  const uint16_t port = server.server().health_ports().front();
  EXPECT_EQ(Ask(port, "/healthz").status, 200);
  RawClient named = RawClient::Tcp(port);
  named.Send("GET /healthz HTTP/1.1\r\nHost: 10.1.2.3:9000\r\n\r\n");
  EXPECT_EQ(named.Receive().status, 200) << "a probe names the address it was told";
  EXPECT_EQ(Ask(port, "/openapi.json").status, 404);
  EXPECT_EQ(Ask(server.port(), "/openapi.json").status, 200) << "the control";
}

TEST(Health, AnswersAreCounted) {
  std::atomic<int> told = 0;
  ServerConfig config;
  config.http.answered = [&](std::string_view, std::string_view route, std::string_view,
                             int status) { told += route == "/healthz" && status == 200 ? 1 : 0; };
  RunningServer server(config);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(Ask(server.port(), "/healthz").status, 200);
  }
  EXPECT_TRUE(test::WaitUntil([&] { return told == 5; }));
  server.OnLoop([&] { EXPECT_EQ(server.server().stats().requests, 5U); });
}

}  // namespace
}  // namespace coffer::gateway
