// SPDX-License-Identifier: Apache-2.0
//
// What stands still is ended in its time, and what has ended gives its place back at once.
#include <openssl/ssl.h>

#include <atomic>
#include <memory>

#include "tests/unit/egress/one_rule_proxy.h"

namespace coffer::egress {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

ProxyTimes Short() {
  ProxyTimes times;
  times.idle = seconds(3);
  times.answer = seconds(1);
  times.half_open = seconds(1);
  return times;
}

// A server that answers each request, or stays silent, or reads nothing.
class ProxyTimesTest : public OneRuleProxy {
 protected:
  enum class Server { kAnswers, kSilent, kReadsNothing };

  void ServeOne(int client) override {
    if (server_kind_ == Server::kReadsNothing) {
      while (!ended_) {
        std::this_thread::sleep_for(milliseconds(20));
      }
      return;
    }
    std::string request;
    for (std::string some; !(some = ReadSome(client, 4096)).empty();) {
      request += some;
      if (server_kind_ == Server::kAnswers && request.ends_with("\r\n\r\n")) {
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
        request.clear();
      }
    }
  }
  void TearDown() override {
    ended_ = true;
    OneRuleProxy::TearDown();
  }
  bool Asked(const AccessNotice& notice) override {
    if (notice.kind == AccessNotice::Kind::kAsked) {
      loop_->Post([this, id = notice.id] { proxy_->Decide({id, AccessChoice::kForMinutes, 1}); });
    }
    return true;
  }
  std::string Host() const { return "api.test:" + std::to_string(server_port_); }
  std::string Request(const std::string& method, const std::string& fields) const {
    return method + " http://" + Host() + "/x HTTP/1.1\r\nHost: " + Host() + "\r\n" + fields +
           "\r\n";
  }
  UniqueFd Send(const std::string& text) const {
    UniqueFd fd = ConnectTo(port_);
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return fd;
  }

  Server server_kind_ = Server::kAnswers;
  std::atomic<bool> ended_ = false;
};

EgressRule Judged() { return policy::ParseAllow("http://api.test:1/**").value(); }

// 64 connections at a time. If each kept its place for a second after its end, these would take five.
TEST_F(ProxyTimesTest, AJudgedConnectionThatEndedGivesItsPlaceBackAtOnce) {
  Start(Judged());
  const auto began = steady_clock::now();
  for (int i = 0; i < 320; ++i) {
    const UniqueFd fd = Send(Request("GET", ""));
    const std::string answer = ReadSome(fd.get(), 4096);
    ASSERT_TRUE(answer.starts_with("HTTP/1.1 200")) << i << answer;
  }
  EXPECT_LT(steady_clock::now() - began, seconds(4));
  EXPECT_EQ(ReasonsAtEnd(), std::set<std::string>{""});
}

// The first message of a client of TLS.
std::string FirstMessageOfTls() {
  const std::shared_ptr<SSL_CTX> context(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  const std::shared_ptr<SSL> ssl(::SSL_new(context.get()), ::SSL_free);
  BIO* const out = ::BIO_new(::BIO_s_mem());
  ::SSL_set_bio(ssl.get(), ::BIO_new(::BIO_s_mem()), out);
  ::SSL_set_tlsext_host_name(ssl.get(), "api.test");
  ::SSL_set_connect_state(ssl.get());
  ::SSL_do_handshake(ssl.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  return {data, static_cast<size_t>(size)};
}

// One connection at a time. A proxy reads on for a second behind a refusal; behind the end of a handshake there is nothing to read.
TEST_F(ProxyTimesTest, AHandshakeThatEndedGivesItsPlaceBackAtOnce) {
  grants_.connections = 1;
  Start(policy::ParseAllow("GET https://api.test:1/**").value());
  const std::string hello = FirstMessageOfTls();
  constexpr int kCount = 8;
  const auto began = steady_clock::now();
  for (int i = 0; i < kCount; ++i) {
    const UniqueFd fd = Send("CONNECT " + Host() + " HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(ReadSome(fd.get(), 4096).starts_with("HTTP/1.1 200"));
    ASSERT_EQ(::send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
    ASSERT_FALSE(ReadSome(fd.get(), 4096).empty()) << "NO-CONTROL: no handshake began";
  }
  EXPECT_LT(steady_clock::now() - began, kCount * seconds(1) / 2) << "each kept its place";
}

TEST_F(ProxyTimesTest, AServerThatDoesNotAnswerIsAnErrorInside) {
  server_kind_ = Server::kSilent;
  Start(Judged(), Short());
  const UniqueFd fd = Send(Request("GET", ""));
  const std::string answer = ReadAll(fd.get(), 4096);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 504")) << answer;
  EXPECT_NE(answer.find("upstream_silent"), std::string::npos) << answer;
  ASSERT_EQ(End().size(), 1U);
  EXPECT_TRUE(End()[0].allowed) << "no denial: the server is to blame";
  EXPECT_EQ(End()[0].reason, "the server did not answer within 1 s");
}

// More than all buffers hold, to a server that takes none of it.
TEST_F(ProxyTimesTest, AnUploadThatStandsStillIsEnded) {
  server_kind_ = Server::kReadsNothing;
  ProxyTimes times = Short();
  times.half_open = seconds(60);
  Start(Judged(), times);
  const UniqueFd fd = Send(Request("POST", "Content-Length: 100000000\r\n"));
  const std::string piece(1 << 20, 'x');
  const auto began = steady_clock::now();
  while (::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
  }
  EXPECT_GT(steady_clock::now() - began, seconds(2)) << "NO-CONTROL";
  EXPECT_LT(steady_clock::now() - began, seconds(30));
}

// The same, and its program has gone: the place is free long before a program that is there would be given up. It leaves
// with a reset. The kernel holds an ordinary end back behind bytes that have no room, and then the proxy cannot know of it.
TEST_F(ProxyTimesTest, AnUploadWhoseProgramLeftIsEnded) {
  server_kind_ = Server::kReadsNothing;
  ProxyTimes times = Short();
  times.idle = seconds(300);
  Start(Judged(), times);
  {
    const UniqueFd fd = Send(Request("POST", "Content-Length: 100000000\r\n"));
    const std::string piece(1 << 20, 'x');
    while (::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
      std::this_thread::sleep_for(milliseconds(20));
    }
    const linger at_once{1, 0};
    ASSERT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
  }
  const auto logged = [this] {
    std::atomic<int> size = -1;
    loop_->Post([&] { size = static_cast<int>(log_.size()); });
    while (size < 0) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return size.load();
  };
  EXPECT_EQ(logged(), 0) << "NO-CONTROL";
  const auto began = steady_clock::now();
  while (logged() == 0 && steady_clock::now() - began < seconds(30)) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  ended_ = true;
  ASSERT_EQ(End().size(), 1U);
  EXPECT_EQ(End()[0].reason, "the program ended the connection while its request was sent");
}

// Access for a minute, which is short here: an open connection ends with it, whatever goes over it.
TEST_F(ProxyTimesTest, TheEndOfAGrantEndsOpenConnections) {
  EgressRule rule = policy::ParseAllow("tcp://api.test:1").value();
  rule.ask = true;
  ProxyTimes times;
  times.minute = milliseconds(700);
  grants_.hold_seconds = 20;
  Start(rule, times);
  std::string answer;
  const UniqueFd fd = Tunnel(answer);
  ASSERT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  const auto began = steady_clock::now();
  const auto alive = [&] {
    (void)::send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    return !ReadSome(fd.get(), 4096).empty();
  };
  EXPECT_TRUE(alive()) << "NO-CONTROL";
  while (alive() && steady_clock::now() - began < seconds(20)) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_LT(steady_clock::now() - began, seconds(10));
  ASSERT_EQ(End().size(), 1U);
  EXPECT_EQ(End()[0].reason, "the time that access was granted for is over");
}

}  // namespace
}  // namespace coffer::egress
