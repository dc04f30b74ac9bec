// SPDX-License-Identifier: Apache-2.0
//
// A connection whose bytes never become a request is refused in one line, as any other is.
#include "tests/unit/egress/one_rule_proxy.h"

namespace coffer::egress {
namespace {

class ProxyUnread : public OneRuleProxy {
 protected:
  // Sends `first`, reads what is said to it if `second` is to follow, ends its side, and waits for the other's end.
  void Send(const std::string& first, const std::string& second = {}) const {
    const UniqueFd fd = ConnectTo(port_);
    EXPECT_EQ(::send(fd.get(), first.data(), first.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(first.size()));
    if (!second.empty()) {
      EXPECT_NE(ReadSome(fd.get(), 4096), "");
      EXPECT_EQ(::send(fd.get(), second.data(), second.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(second.size()));
    }
    ::shutdown(fd.get(), SHUT_WR);
    (void)ReadAll(fd.get(), 4096);
  }
  std::string Host() const { return "api.test:" + std::to_string(server_port_); }
  // The one line of it.
  Traffic Refused() {
    const std::vector<Traffic>& log = End();
    EXPECT_EQ(log.size(), 1U);
    EXPECT_TRUE(log.empty() || !log[0].allowed);
    return log.empty() ? Traffic() : log[0];
  }
};

EgressRule Plain() { return policy::ParseAllow("http://api.test:1/**").value(); }

TEST_F(ProxyUnread, AHeadWithoutCarriageReturns) {
  Start(Plain());
  Send("GET http://" + Host() + "/x HTTP/1.1\nHost: " + Host() + "\n\n");
  EXPECT_TRUE(Refused().reason.starts_with("no request came")) << End()[0].reason;
}

TEST_F(ProxyUnread, Socks4) {
  Start(Plain());
  Send(std::string("\x04\x01\x00\x50\x7f\0\0\x01\0", 9));
  EXPECT_EQ(Refused().reason, "this is SOCKS 4, and the proxy speaks HTTP and SOCKS 5");
}

TEST_F(ProxyUnread, APartOfSocks5) {
  Start(Plain());
  Send(std::string("\x05\x01\x00", 3), std::string("\x05\x01", 2));
  EXPECT_EQ(Refused().reason, "no request came: the client sent only a part of SOCKS 5");
}

TEST_F(ProxyUnread, OtherBytesInATunnelThatIsLookedInto) {
  Start(policy::ParseAllow("GET https://api.test:1/**").value());
  Send("CONNECT " + Host() + " HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n");
  const Traffic refused = Refused();
  EXPECT_TRUE(refused.reason.starts_with("no request came")) << refused.reason;
  EXPECT_EQ(refused.host, "api.test");
  EXPECT_EQ(refused.port, server_port_);
  EXPECT_EQ(refused.fix, "--allow tcp://" + Host());
}

// The control: what says nothing, and what has said all that it had to, is no refusal.
TEST_F(ProxyUnread, AConnectionWithoutBytesAndOneThatIsDone) {
  Start(Plain());
  Send("");
  const std::string head = "GET http://" + Host() + "/x HTTP/1.1\r\nHost: " + Host() + "\r\n\r\n";
  Send(head);  // which the server sends back, so there is an answer that is not HTTP
  const std::vector<Traffic>& log = End();
  ASSERT_EQ(log.size(), 1U);
  EXPECT_TRUE(log[0].allowed);
}

}  // namespace
}  // namespace coffer::egress
