// SPDX-License-Identifier: Apache-2.0
//
// `--upstream-proxy`: hosts are dialled through the proxy that the caller names. Names are judged before, as ever; only the
// addresses are the proxy's to find.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"
#include "tests/support/upstream_proxy.h"

namespace coffer::test {
namespace {

class EgressUpstreamProxy : public EgressFixture {
 protected:
  void SetUp() override {
    EgressFixture::SetUp();
    proxy_.emplace(dir_.path() + "/asked");
  }
  std::string Proxy() const { return proxy_->Url(); }
  std::string Asked() const { return proxy_->Asked(); }
  // Neither a name with a fixed address nor an open address: the proxy's own one needs no leave.
  RunResult Through(Strings flags, const std::string& script) {
    flags.insert(flags.end(),
                 {"--upstream-proxy", Proxy(), "--upstream-ca", dir_.path() + "/ca.pem"});
    return RunBare(flags, {"sh", "-c", script});
  }
  std::string Curl(const std::string& host, int port, const std::string& path) const {
    return "curl -sS https://" + host + ":" + std::to_string(port) + path + " 2>&1; ";
  }

  std::optional<UpstreamProxy> proxy_;
};

TEST_F(EgressUpstreamProxy, NamesAreJudgedHereAndDialledThere) {
  const RunResult run =
      Through({"--allow", Api()}, Curl("api.test", tls_, "/a") + Curl("other.test", tls_, "/b"));
  EXPECT_TRUE(Contains(run.out, "hello /a")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_EQ(Asked(), "CONNECT " + Api() + " HTTP/1.1\n")
      << "OPEN: what no rule allows was asked for";
  EXPECT_FALSE(Contains(Seen(), "request GET /b")) << "OPEN";
  EXPECT_EQ(Receipt()["network"][0]["rule"], Api());
}

TEST_F(EgressUpstreamProxy, RequestsAreJudgedAndTheServerIsVerified) {
  const RunResult run = Through({"--allow", "GET https://" + Api() + "/v1/**"},
                                Curl("api.test", tls_, "/v1/x") + Curl("api.test", tls_, "/v2"));
  EXPECT_TRUE(Contains(run.out, "hello /v1/x")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_TRUE(Contains(run.out, "path_not_allowed")) << run.out;
  // Without the authority that signed the server, the proxy's word is not enough.
  const RunResult wrong =
      RunBare({"--allow", "GET https://" + Api() + "/v1/**", "--upstream-proxy", Proxy()},
              {"sh", "-c", Curl("api.test", tls_, "/v1/x")});
  EXPECT_FALSE(Contains(wrong.out, "hello")) << "OPEN\n" << wrong.out;
  EXPECT_TRUE(Contains(wrong.out + wrong.err, "certificate")) << wrong.out << wrong.err;
}

TEST_F(EgressUpstreamProxy, ANumberAndTheMetadataServiceAreNotAskedFor) {
  const std::string at = "127.0.0.1:" + std::to_string(tls_);
  const RunResult run = Through(
      {"--allow", at, "--allow", Api()},
      "NO_PROXY= no_proxy= " + Curl("127.0.0.1", tls_, "/n") + Curl("api.test", tls_, "/a"));
  EXPECT_FALSE(Contains(run.out, "hello /n")) << "OPEN\n" << run.out;
  EXPECT_TRUE(Contains(run.out, "hello /a")) << "NO-CONTROL\n" << run.out << run.err;
  EXPECT_FALSE(Contains(Asked(), "127.0.0.1")) << "OPEN\n" << Asked();
}

TEST_F(EgressUpstreamProxy, BytesBehindTheAnswerAreTheServers) {
  const std::string port = std::to_string(greeter_);
  const RunResult run = Through(
      {"--allow", "tcp://greeter.test:" + port},
      "python3 -c \"import socket\ns=socket.create_connection(('127.0.0.1',3128),20)\n"
      "s.sendall(b'CONNECT greeter.test:" +
          port +
          " HTTP/1.1\\r\\n\\r\\n')\n"
          "got=b''\n"
          "while b'SSH-' not in got:\n  more=s.recv(100)\n  if not more: break\n  got+=more\n"
          "print(got)\"");
  EXPECT_TRUE(Contains(run.out, "SSH-")) << "NO-CONTROL\n" << run.out << run.err;
}

TEST_F(EgressUpstreamProxy, AProxyThatRefusesOrIsGoneIsSaid) {
  RunResult run = Through({"--allow", Api()}, Curl("api.test", tls_, "/a"));
  EXPECT_TRUE(Contains(run.out, "hello /a")) << "NO-CONTROL\n" << run.out << run.err;
  run = Through({"--allow", "closed.test:443"}, Curl("closed.test", 443, "/a"));
  EXPECT_TRUE(Contains(run.err, "the upstream proxy answered 403 for closed.test:443")) << run.err;
  proxy_.reset();
  run = Through({"--allow", Api()}, Curl("api.test", tls_, "/a"));
  EXPECT_TRUE(Contains(run.err, "the upstream proxy: ")) << run.err;
  EXPECT_FALSE(Contains(run.out, "hello")) << "OPEN";
}

TEST_F(EgressUpstreamProxy, CredentialsInItsAddressAreRefusedAndNotShown) {
  const RunResult good = RunBare({"--allow", Api(), "--upstream-proxy", Proxy()}, {"true"});
  EXPECT_EQ(good.exit, 0) << "NO-CONTROL\n" << good.err;
  for (const char* const url : {"http://user:hunter2@127.0.0.1:3128", "user:hunter2@127.0.0.1:3128",
                                "https://user:hunter2@127.0.0.1:3128"}) {
    const RunResult run = RunBare({"--allow", Api(), "--upstream-proxy", url}, {"true"});
    EXPECT_EQ(run.exit, 120) << run.err;
    EXPECT_TRUE(Contains(run.err, "--upstream-proxy")) << run.err;
    EXPECT_FALSE(Contains(run.err, "hunter2")) << run.err;
  }
}

}  // namespace
}  // namespace coffer::test
