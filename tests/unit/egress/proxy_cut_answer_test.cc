// SPDX-License-Identifier: Apache-2.0
//
// An answer whose length nothing says, of a server without TLS. If it is cut, by the server, by a limit or by time, the program
// must not take the part for the whole: its connection is reset.
#include <errno.h>

#include "tests/unit/egress/one_rule_proxy.h"

namespace coffer::egress {
namespace {

class ProxyCutAnswer : public OneRuleProxy {
 protected:
  enum class Server { kEnds, kResets, kStandsStill };

  void ServeOne(int client) override {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      const std::string more = ReadSome(client, 1);
      if (more.empty()) {
        return;
      }
      head += more;
    }
    const std::string answer = "HTTP/1.1 200 OK\r\n\r\n" + std::string(kBody, 'x');
    (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    if (server_kind_ == Server::kStandsStill) {
      (void)ReadSome(client, 1);  // until the proxy leaves
    }
    if (server_kind_ == Server::kResets) {
      const linger reset{1, 0};
      ::setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
  }

  // How the program's connection ended: 0 in the end, or errno; and how much of the body had come.
  int Ask(size_t& body) {
    const UniqueFd fd = ConnectTo(port_);
    const std::string host = "api.test:" + std::to_string(server_port_);
    const std::string head = "GET http://" + host + "/x HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
    EXPECT_EQ(::send(fd.get(), head.data(), head.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(head.size()));
    std::string text;
    char some[4096];
    ssize_t got = 0;
    while ((got = ::read(fd.get(), some, sizeof(some))) > 0) {
      text.append(some, static_cast<size_t>(got));
    }
    const int error = got < 0 ? errno : 0;
    const size_t end = text.find("\r\n\r\n");
    body = end == std::string::npos ? 0 : text.size() - end - 4;
    return error;
  }

  static constexpr size_t kBody = 1 << 20;  // many reads of the proxy
  Server server_kind_ = Server::kEnds;
};

EgressRule AnyPath() { return policy::ParseAllow("http://api.test:1/**").value(); }

// The control: an end that the server said is the end.
TEST_F(ProxyCutAnswer, AnEndIsPassedOn) {
  Start(AnyPath());
  size_t body = 0;
  EXPECT_EQ(Ask(body), 0) << "NO-CONTROL";
  EXPECT_EQ(body, kBody) << "NO-CONTROL";
  EXPECT_EQ(ReasonsAtEnd(), std::set<std::string>{""});
}

TEST_F(ProxyCutAnswer, AResetOfTheServerIsNoEnd) {
  server_kind_ = Server::kResets;
  Start(AnyPath());
  size_t body = 0;
  EXPECT_EQ(Ask(body), ECONNRESET) << "OPEN: a part counts as the whole";
  ASSERT_EQ(End().size(), 1U);
  EXPECT_EQ(End()[0].reason, "the server's answer ended early or is not well formed");
}

TEST_F(ProxyCutAnswer, ABudgetThatIsSpentIsNoEnd) {
  EgressRule rule = AnyPath();
  rule.bytes_in = kBody / 2;
  Start(std::move(rule));
  size_t body = 0;
  EXPECT_EQ(Ask(body), ECONNRESET) << "OPEN: a part counts as the whole";
  EXPECT_LT(body, kBody);
}

TEST_F(ProxyCutAnswer, ATimeThatIsOverIsNoEnd) {
  server_kind_ = Server::kStandsStill;
  ProxyTimes times;
  times.idle = std::chrono::seconds(1);
  Start(AnyPath(), times);
  size_t body = 0;
  EXPECT_EQ(Ask(body), ECONNRESET) << "OPEN: a part counts as the whole";
}

}  // namespace
}  // namespace coffer::egress
