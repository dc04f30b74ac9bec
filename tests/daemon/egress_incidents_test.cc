// SPDX-License-Identifier: Apache-2.0
//
// A tool that tries destinations which only an escape would try: its operators are told, in the receipt, by a webhook and in
// the metrics. Ordinary refusals are not incidents.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/daemon/egress_daemon.h"
#include "tests/daemon/http_receiver.h"

namespace coffer::test {
namespace {

class EgressIncidents : public DaemonEgress {
 protected:
  void SetUp() override {
    DaemonEgress::SetUp();
    std::ofstream(file_, std::ios::trunc)
        << "[egress]\nresolve = [\"meta.test=169.254.169.254\", \"inner.test=10.9.8.7\", "
           "\"api.test=127.0.0.1\"]\ndangerously_addresses = [\"127.0.0.0/8\"]\n"
        << "[[webhook]]\nurl = \"" << receiver_.Url("/hook") << "\"\n";
    ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
    Declare("reader", Plain("api.test") + Plain("meta.test") + Plain("inner.test"));
    ASSERT_TRUE(Start());
  }
  static std::string Get(const std::string& host) { return "ask GET " + host + " 80 /v1/x\n"; }
  std::string Metrics() const { return daemon_.Ask("GET", "/metrics", daemon_.key()).text; }
  // What the webhook was told of that call.
  Json Told(const std::string& call) {
    Json told;
    EXPECT_TRUE(WaitUntil([&] {
      for (const Posted& post : receiver_.posts()) {
        if (const Json event = post.json(); event.value("subject", "") == call) {
          told = event["data"]["incidents"];
        }
      }
      return told.is_array();
    }));
    return told;
  }

  HttpReceiver receiver_;
};

TEST_F(EgressIncidents, OperatorsAreTold) {
  const HttpAnswer tried =
      Call("reader", Get("169.254.169.254") + Get("metadata.google.internal") + Ask("meta.test") +
                         "\n" + Get("169.254.1.1") + Ask("inner.test") + "\n" + Ask("api.test"));
  EXPECT_TRUE(Contains(Out(tried), "hello /v1/x")) << "NO-CONTROL\n" << tried.text;
  const std::string port = std::to_string(plain_);
  const Json expected = {"metadata: 169.254.169.254:80 and 2 others were tried 3 times and refused",
                         "link_local: 169.254.1.1:80 was tried once and refused",
                         "internal: inner.test:" + port + " was tried once and refused"};
  EXPECT_EQ(ReceiptOf(tried)["incidents"], expected) << ReceiptOf(tried).dump();
  EXPECT_EQ(Told(tried.At("call_id")), expected);
  const std::string metrics = Metrics();
  for (const char* const kind : {"metadata", "link_local", "internal"}) {
    EXPECT_TRUE(Contains(metrics, "coffer_incidents_total{kind=\"" + std::string(kind) + "\"} 1\n"))
        << kind;
  }
}

// The control of the other: refusals that a program earns by not knowing its rules.
TEST_F(EgressIncidents, OrdinaryRefusalsAreNone) {
  const HttpAnswer tried = Call(
      "reader", Get("other.test") + Get("10.1.2.3") + Get("127.0.0.1") + Ask("api.test", "/v2/x"));
  const Json receipt = ReceiptOf(tried);
  EXPECT_EQ(receipt["denials"].size(), 4U) << receipt.dump();
  EXPECT_EQ(receipt["incidents"], Json::array());
  EXPECT_EQ(Told(tried.At("call_id")), Json::array());
  EXPECT_TRUE(Contains(Metrics(), "coffer_incidents_total{kind=\"metadata\"} 0\n"));
}

}  // namespace
}  // namespace coffer::test
