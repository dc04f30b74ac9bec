// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/baseline.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MeterTest : public store::StoreTest {
 protected:
  MeterTest() : shelf_(std::vector<std::string>{}) {
    store::Must(shelf_.Reload());
    meter_.Begin(store(), shelf_, live_config_,
                 [this](const watch::Alert& alert) { told_.push_back(alert); });
  }
  audit::Receipt Receipt(const char* tool) {
    audit::Receipt receipt;
    receipt.identity.tenant = a_;
    receipt.identity.tool = tool;
    receipt.outcome = "success";
    receipt.requested_at = receipt.started_at = receipt.finished_at = store().Now();
    receipt.finished_at += std::chrono::milliseconds(100);
    return receipt;
  }
  void Configure(bool enabled, uint64_t deviations = 2) {
    call::FileConfig config;
    config.anomaly.enabled = enabled;
    config.anomaly.deviations = deviations;
    live_config_.Replace(std::move(config));
    meter_.Tick();
  }
  size_t Rows(const char* tool) {
    return store::Must(store::ReadBaselines(store(), a_, tool, 0)).size();
  }
  std::string Seen(bool all_tenants = false) {
    gateway::Identity who;
    who.tenant = a_;
    who.all_tenants = all_tenants;
    gateway::Answer<std::string> answer = meter_.Print(who);
    EXPECT_TRUE(answer.ok());
    return answer.ok() ? answer.value() : "";
  }

  call::ToolShelf shelf_;
  LiveConfig live_config_;
  std::vector<watch::Alert> told_;
  Meter meter_;
};

TEST_F(MeterTest, OnlyToolsThatExistHaveABaseline) {
  for (int i = 0; i < 100; ++i) {
    meter_.CallEnded(Receipt(("made-up-" + std::to_string(i)).c_str()));
  }
  meter_.CallEnded(Receipt("bash"));
  audit::Receipt rehearsed = Receipt("python");
  rehearsed.denials.push_back({"policy", "call", "python", "policy.dry_run", "", "", 1});
  meter_.CallEnded(rehearsed);
  meter_.End();
  EXPECT_GT(Rows("bash"), 0U);
  EXPECT_EQ(Rows("python"), 0U);
  EXPECT_EQ(Rows("made-up-1"), 0U);
  EXPECT_THAT(Seen(), HasSubstr(R"(coffer_calls_total{tool="other",outcome="success"} 100)"));
  EXPECT_THAT(Seen(), HasSubstr(R"(coffer_calls_total{tool="bash",outcome="success"} 1)"));
  EXPECT_THAT(Seen(), Not(HasSubstr("made-up")));
}

TEST_F(MeterTest, TheConfigurationCanSwitchItOffAndOn) {
  Configure(false);
  meter_.CallEnded(Receipt("bash"));
  meter_.End();
  EXPECT_EQ(Rows("bash"), 0U);
  EXPECT_THAT(Seen(), HasSubstr(R"(coffer_calls_total{tool="bash",outcome="success"} 1)"));
  Configure(true);
  meter_.CallEnded(Receipt("bash"));
  Configure(true, 3);  // other rules: what was counted is not lost
  meter_.CallEnded(Receipt("bash"));
  meter_.End();
  double calls = 0;
  for (const store::BaselineHour& hour :
       store::Must(store::ReadBaselines(store(), a_, "bash", 0))) {
    calls += hour.measure == "rate" ? hour.total : 0;
  }
  EXPECT_EQ(calls, 2);
}

TEST_F(MeterTest, AnAlertIsCountedAndTold) {
  for (int i = 0; i < 24 * 4; ++i) {
    Pass(std::chrono::minutes(15));
    meter_.CallEnded(Receipt("bash"));
  }
  EXPECT_TRUE(told_.empty());
  EXPECT_THAT(Seen(), HasSubstr("coffer_alerts_total{kind=\"duration\"} 0"));
  audit::Receipt slow = Receipt("bash");
  slow.finished_at += std::chrono::seconds(60);
  meter_.CallEnded(slow);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0].measure, "duration");
  EXPECT_THAT(Seen(), HasSubstr("coffer_alerts_total{kind=\"duration\"} 1"));
}

TEST_F(MeterTest, IncidentsCountOncePerCallAndKind) {
  audit::Receipt receipt = Receipt("bash");
  receipt.syscalls_denied = {{"unshare", 7}, {"setns", 2}, {"bpf", 1}, {"chown", 9}};
  receipt.denials = {{"egress", "request", "POST a.test:443/x", "egress.never_send", "", "", 2},
                     {"egress", "request", "POST a.test:443/y", "egress.never_send", "", "", 1}};
  meter_.CallEnded(receipt);
  EXPECT_THAT(Seen(), HasSubstr("coffer_incidents_total{kind=\"namespace\"} 1"));
  EXPECT_THAT(Seen(), HasSubstr("coffer_incidents_total{kind=\"kernel\"} 1"));
  EXPECT_THAT(Seen(), HasSubstr("coffer_incidents_total{kind=\"leak\"} 1"));
  EXPECT_THAT(Seen(), HasSubstr("coffer_incidents_total{kind=\"mount\"} 0"));
}

TEST_F(MeterTest, DestinationsAreIncidentsToo) {
  audit::Receipt receipt = Receipt("bash");
  receipt.denials = {{"egress", "connect", "a.test:443", "egress", "no rule", "", 5},
                     {"egress", "connect", "169.254.169.254:80", "egress.metadata", "", "", 2},
                     {"egress", "resolve", "metadata.goog", "egress.metadata", "", "", 1}};
  meter_.CallEnded(receipt);
  EXPECT_THAT(Seen(), HasSubstr("coffer_incidents_total{kind=\"metadata\"} 1"));
  EXPECT_THAT(Seen(), HasSubstr("coffer_incidents_total{kind=\"internal\"} 0"));
  EXPECT_THAT(Seen(),
              HasSubstr("coffer_denials_total{surface=\"egress\",rule=\"egress.metadata\"} 3"));
}

TEST_F(MeterTest, WhoSeesTheHost) {
  meter_.WatchDeliveries([] { return DeliveryCounts{3, 2, 1}; });
  EXPECT_THAT(Seen(true), HasSubstr("coffer_deliveries_total{result=\"failed\"} 2"));
  EXPECT_THAT(Seen(true), HasSubstr("process_open_fds "));
  EXPECT_THAT(Seen(true), Not(HasSubstr("NaN")));
  EXPECT_THAT(Seen(), Not(HasSubstr("process_")));
  EXPECT_THAT(Seen(), Not(HasSubstr("coffer_deliveries_total")));
}

}  // namespace
}  // namespace coffer::daemon
