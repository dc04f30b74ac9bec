// SPDX-License-Identifier: Apache-2.0
//
// A server that answers a request before it has read the body, and takes no more of it. What is left of the body is no
// request: a file that a program uploads must not decide what the program asks for next.
#include <map>

#include "tests/unit/egress/one_rule_proxy.h"

namespace coffer::egress {
namespace {

class ProxyEarlyAnswer : public OneRuleProxy {
 protected:
  // Reads one head, answers it as a server does that keeps the connection, and closes it after a POST.
  void ServeOne(int client) override {
    for (;;) {
      std::string head;
      while (!head.ends_with("\r\n\r\n")) {
        const std::string more = ReadSome(client, 1);
        if (more.empty()) {
          return;
        }
        head += more;
      }
      const std::string line = head.substr(0, head.find(" HTTP"));
      {
        const std::lock_guard lock(mutex_);
        ++asked_[line];
      }
      const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
      (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      if (line.starts_with("POST")) {
        return;
      }
    }
  }
  std::string Request(const std::string& line, const std::string& fields = {}) const {
    const std::string host = "api.test:" + std::to_string(server_port_);
    const size_t space = line.find(' ');
    return line.substr(0, space) + " http://" + host + line.substr(space + 1) +
           " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n";
  }
  int CountOf(const std::string& line) {
    const std::lock_guard lock(mutex_);
    return asked_[line];
  }
  // Waits until the proxy has ended the connection, or `done`. Each piece is whole requests, so that what is left of the body
  // begins with one wherever it is cut.
  template <typename Done>
  void SendPieces(int fd, const std::string& piece, size_t count, const Done& done) {
    for (size_t i = 0; i < count && !done(); ++i) {
      if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) {
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // a piece arrives by itself
    }
  }

  std::map<std::string, int> asked_;
};

TEST_F(ProxyEarlyAnswer, TheRestOfABodyIsNoRequest) {
  constexpr size_t kPieces = 200;
  Start(policy::ParseAllow("http://api.test:1/**").value());
  const std::string hidden = Request("GET /hidden");
  for (const bool chunked : {false, true}) {
    SCOPED_TRACE(chunked ? "in chunks" : "with a length");
    const UniqueFd fd = ConnectTo(port_);
    const std::string head =
        Request("POST /upload",
                chunked ? "Transfer-Encoding: chunked\r\n"
                        : "Content-Length: " + std::to_string(kPieces * hidden.size()) + "\r\n");
    ASSERT_EQ(::send(fd.get(), head.data(), head.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(head.size()));
    for (int left = 1000;
         left > 0 && (CountOf("POST /upload") < 1 + (chunked ? 1 : 0) || serving() > 0); --left) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(serving(), 0U) << "NO-CONTROL: the server has not closed";
    if (chunked) {
      // One chunk that is longer than what follows.
      const std::string size = "fffffff\r\n";
      ASSERT_EQ(::send(fd.get(), size.data(), size.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(size.size()));
    }
    SendPieces(fd.get(), hidden, kPieces, [&] { return CountOf("GET /hidden") > 0; });
    EXPECT_EQ(CountOf("GET /hidden"), 0) << "OPEN: a part of the body was sent as a request";
    ::shutdown(fd.get(), SHUT_WR);
    const std::string said = ReadAll(fd.get(), 1 << 20);
    EXPECT_TRUE(said.starts_with("HTTP/1.1 200")) << "the answer is lost\n" << said;
    EXPECT_EQ(said.find("HTTP/1.1", 1), std::string::npos) << "OPEN: more than one answer\n"
                                                           << said;
    EXPECT_NE(said.find("Connection: close"), std::string::npos) << said;
  }
}

// The control: behind a body that was taken whole the next request is one.
TEST_F(ProxyEarlyAnswer, ARequestBehindAWholeBodyIsServed) {
  Start(policy::ParseAllow("http://api.test:1/**").value());
  const UniqueFd fd = ConnectTo(port_);
  const std::string both = Request("PUT /upload", "Content-Length: 0\r\n") + Request("GET /hidden");
  ASSERT_EQ(::send(fd.get(), both.data(), both.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(both.size()));
  ::shutdown(fd.get(), SHUT_WR);
  const std::string said = ReadAll(fd.get(), 1 << 20);
  EXPECT_EQ(CountOf("PUT /upload"), 1) << said;
  EXPECT_EQ(CountOf("GET /hidden"), 1) << "NO-CONTROL\n" << said;
}

}  // namespace
}  // namespace coffer::egress
