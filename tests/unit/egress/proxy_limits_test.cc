// SPDX-License-Identifier: Apache-2.0
//
// The limits of a rule hold for what goes through a proxy: each with a control below the limit.
#include "tests/unit/egress/one_rule_proxy.h"

namespace coffer::egress {
namespace {

class ProxyLimits : public OneRuleProxy {};

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

// A connection that is used all the time ends too, and the next one has its own time.
TEST_F(ProxyLimits, Time) {
  EgressRule rule = AnyBytes();
  rule.time = std::chrono::milliseconds(500);
  Start(rule);
  std::string answer;
  for (int i = 0; i < 2; ++i) {
    const UniqueFd fd = Tunnel(answer);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
    EXPECT_EQ(Echo(fd.get(), 10).size(), 10u) << "the control";
    const auto began = std::chrono::steady_clock::now();
    while (!Echo(fd.get(), 10).empty() &&
           std::chrono::steady_clock::now() - began < std::chrono::seconds(20)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  }
  EXPECT_EQ(
      ReasonsAtEnd(),
      (std::set<std::string>{"its rule allows a connection or request 500ms, and they are over"}));
}

// A request whose answer does not come.
TEST_F(ProxyLimits, TimeOfARequest) {
  EgressRule rule = policy::ParseAllow("http://api.test:1/**").value();
  rule.time = std::chrono::milliseconds(300);
  Start(rule);
  const UniqueFd fd = ConnectTo(port_);
  const std::string to = "api.test:" + std::to_string(server_port_);
  // An echo of this is not the head of an answer until it is whole.
  const std::string head =
      "POST http://" + to + "/x HTTP/1.1\r\nHost: " + to + "\r\nContent-Length: 10\r\n\r\n12345";
  EXPECT_EQ(::write(fd.get(), head.data(), head.size()), static_cast<ssize_t>(head.size()));
  EXPECT_EQ(ReadAll(fd.get(), 100), "") << "the connection ends";
  EXPECT_EQ(
      ReasonsAtEnd(),
      (std::set<std::string>{"its rule allows a connection or request 300ms, and they are over"}));
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
