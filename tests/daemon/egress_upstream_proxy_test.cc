// SPDX-License-Identifier: Apache-2.0
//
// `upstream_proxy` and `proxied` of [egress]: which hosts of manifests are dialled through the operator's proxy.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/daemon/egress_daemon.h"
#include "tests/support/upstream_proxy.h"

namespace coffer::test {
namespace {

class DaemonEgressUpstream : public DaemonEgress {
 protected:
  void SetUp() override {
    DaemonEgress::SetUp();
    proxy_.emplace(dir_.path() + "/asked");
    Declare("both", Plain("api.test") + Plain("other.test"));
  }
  void TearDown() override {
    proxy_.reset();
    DaemonEgress::TearDown();
  }
  void Through(const std::string& more = {}) const {
    Configure("upstream_proxy = \"" + proxy_->Url() + "\"\n" + more);
  }
  std::string Connect(const std::string& host, int port) const {
    return "CONNECT " + host + ":" + std::to_string(port) + " HTTP/1.1\n";
  }

  std::optional<UpstreamProxy> proxy_;
};

TEST_F(DaemonEgressUpstream, NamesAreJudgedHereAndDialledThere) {
  // Without this no name has an address, and no address of this host is open: only the proxy finds the servers.
  std::ofstream(file_, std::ios::trunc) << "[egress]\nupstream_proxy = \"" << proxy_->Url()
                                        << "\"\nupstream_ca = \"" << dir_.path() << "/ca.pem\"\n";
  Declare("secure", "[[network.allow]]\nhost = \"api.test\"\nports = [" + std::to_string(tls_) +
                        "]\npaths = [\"/v1/**\"]\n");
  ASSERT_TRUE(Start());
  HttpAnswer answer =
      Call("reader", Ask("api.test") + "\n" + Ask("other.test") + "\n" + Ask("api.test", "/v2"));
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << "NO-CONTROL\n" << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "host_not_allowed")) << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "path_not_allowed")) << answer.text;
  EXPECT_EQ(proxy_->Asked(), Connect("api.test", plain_))
      << "OPEN: what no rule allows was asked for";
  Json receipt = ReceiptOf(answer);
  EXPECT_EQ(receipt["network"][0]["host"], "api.test") << receipt.dump();
  EXPECT_EQ(receipt["network"][0]["decision"], "allow") << receipt.dump();
  EXPECT_EQ(receipt["denials"].size(), 2U) << receipt.dump();
  // Inside TLS, with the server's own certificate.
  const std::string tls = std::to_string(tls_);
  answer = Call("secure",
                "python3 -c \"import urllib.request as u\nprint(u.urlopen('https://"
                "api.test:" +
                    tls + "/v1/y').read().decode())\"");
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/y")) << answer.text;
  EXPECT_EQ(proxy_->Asked(), Connect("api.test", plain_) + Connect("api.test", tls_));
}

// The hosts that are named go through it, the others do not; and that changes with the configuration.
TEST_F(DaemonEgressUpstream, OnlyTheNamedHostsGoThroughIt) {
  Through("proxied = [\"other.test\"]\n");
  ASSERT_TRUE(Start());
  HttpAnswer answer = Call("both", Ask("api.test", "/v1/a") + "\n" + Ask("other.test", "/v1/b"));
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/a")) << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/b")) << answer.text;
  EXPECT_EQ(proxy_->Asked(), Connect("other.test", plain_));
  Through();
  ASSERT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
  EXPECT_TRUE(WaitUntil(
      [&] {
        answer = Call("both", Ask("api.test"));
        return Contains(proxy_->Asked(), Connect("api.test", plain_));
      },
      Seconds(30)))
      << answer.text;
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
}

// A number and the metadata service are not asked for there. Without the proxy its hosts are not dialled at all.
TEST_F(DaemonEgressUpstream, ItIsNoWayAroundTheGuard) {
  Through();
  ASSERT_TRUE(Start());
  HttpAnswer answer =
      Call("reader", Ask("127.0.0.1") + "\n" + "ask GET 169.254.169.254 80 /v1/x\n" +
                         "ask GET metadata.google.internal 80 /v1/x\n" + Ask("api.test"));
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << "NO-CONTROL\n" << answer.text;
  EXPECT_EQ(proxy_->Asked(), Connect("api.test", plain_)) << "OPEN";
  proxy_.reset();
  (void)Seen();
  answer = Call("reader", Ask("api.test"));
  EXPECT_TRUE(Contains(Out(answer), "upstream_unreachable")) << answer.text;
  EXPECT_EQ(Seen(), "") << "OPEN: dialled without the proxy";
  const Json receipt = ReceiptOf(answer);
  EXPECT_TRUE(Contains(receipt["network"].dump(), "the upstream proxy: ")) << receipt.dump();
}

}  // namespace
}  // namespace coffer::test
