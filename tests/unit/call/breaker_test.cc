// SPDX-License-Identifier: Apache-2.0
#include "call/breaker.h"

#include <nlohmann/json.hpp>

#include "call/config_file.h"
#include "store/switches.h"
#include "tests/unit/call/recorder_fixture.h"

namespace coffer::call {
namespace {

audit::Receipt With(const std::string& surface, const std::string& rule) {
  audit::Receipt receipt;
  receipt.identity.tool = "python";
  receipt.denials.push_back({surface, "operation", "target", rule, "reason", "", 7});
  return receipt;
}

BreakerConfig On() {
  BreakerConfig config;
  config.rule.denials = 3;
  return config;
}

TEST(Breaker, CountsDestinationsAndIncidentsUnlessMoreIsSaid) {
  audit::Receipt incident = With("isolation", "seccomp.default");
  incident.syscalls_denied = {{"chown", 3}, {"setns", 1}};
  audit::Receipt habit = incident;
  habit.syscalls_denied = {{"chown", 3}};
  const audit::Receipt egress = With("egress", "egress");
  const audit::Receipt policy = With("policy", "policy.args.schema");
  audit::Receipt nothing;
  nothing.identity.tool = "python";

  EXPECT_TRUE(IsCounted(egress, On()));
  EXPECT_TRUE(IsCounted(incident, On()));
  EXPECT_FALSE(IsCounted(habit, On()));
  EXPECT_FALSE(IsCounted(policy, On()));
  EXPECT_FALSE(IsCounted(nothing, On()));
  EXPECT_FALSE(IsCounted(With("egress", "egress.datagram"), On())) << "the host may be reached";

  BreakerConfig config = On();
  config.egress = config.incidents = false;
  config.isolation = true;
  EXPECT_TRUE(IsCounted(habit, config));
  EXPECT_FALSE(IsCounted(egress, config));
  EXPECT_FALSE(IsCounted(policy, config));
  config.isolation = false;
  config.policy = true;
  EXPECT_TRUE(IsCounted(policy, config));
  EXPECT_FALSE(IsCounted(incident, config));
  EXPECT_FALSE(IsCounted(With("policy", "policy.dry_run"), config)) << "nothing was denied";
}

TEST(Breaker, IsOffWithoutASectionAndNotForCofferRun) {
  audit::Receipt receipt = With("egress", "egress");
  EXPECT_TRUE(IsCounted(receipt, On())) << "the control";
  EXPECT_FALSE(IsCounted(receipt, BreakerConfig{}));
  receipt.identity.tool = audit::kRunTool;
  EXPECT_FALSE(IsCounted(receipt, On()));
  receipt.manifest_hash = "sha256:1";
  EXPECT_TRUE(IsCounted(receipt, On())) << "a tool of that name";
}

class BreakerRecorder : public RecorderTest {
 protected:
  BreakerRecorder() {
    recorder_->SetBreaker({[this](const store::TenantId&) { return config_; },
                           [this](const store::Pause& pause) {
                             tripped_.push_back(pause.tool + ":" + pause.agent);
                           }});
  }
  // A call of python that was denied `surface`, or nothing; its answer.
  ToolReply Call(const std::string& surface) {
    ToolRequest request = Asking("python", R"({"code":"1"})");
    std::variant<ReadyCall, ToolReply> climbed = ladder_->Climb(request);
    if (const auto* reply = std::get_if<ToolReply>(&climbed)) {
      return *reply;
    }
    audit::Receipt receipt;
    if (!surface.empty()) {
      receipt = With(surface, surface);
    }
    receipt.outcome = "success";
    receipt.started_at = receipt.finished_at = store_->Now();
    receipt.exit_code = 0;
    Collected collected;
    collected.report = RunReport{0, std::nullopt, receipt, {}};
    return ladder_->Descend(std::get<ReadyCall>(climbed), std::move(collected));
  }
  BreakerConfig config_ = On();
  std::vector<std::string> tripped_;
};

TEST_F(BreakerRecorder, TheFourthIsDeniedOnRecordAndTheTripIsAnEvent) {
  EXPECT_EQ(Call("egress").outcome, "success");
  EXPECT_EQ(Call("").outcome, "success") << "counts nothing";
  EXPECT_EQ(Call("egress").outcome, "success");
  EXPECT_TRUE(tripped_.empty());
  EXPECT_EQ(Call("egress").outcome, "success");
  EXPECT_EQ(tripped_, std::vector<std::string>{"python:tester"});
  const ToolReply denied = Call("");
  EXPECT_EQ(denied.refusal, ToolRefusal::kDenied);
  EXPECT_EQ(denied.error_class, "policy.breaker");
  ASSERT_TRUE(denied.retry_after_seconds.has_value());
  EXPECT_GT(*denied.retry_after_seconds, 0);
  EXPECT_LE(*denied.retry_after_seconds, 600);
  EXPECT_FALSE(denied.receipt.empty());
  const std::vector<Json> events = Events("breaker.tripped");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["tenant"], "local");
  EXPECT_EQ(events[0]["detail"]["agent"], "tester");
  EXPECT_EQ(events[0]["detail"]["tool"], "python");
  EXPECT_FALSE(events[0]["detail"]["until"].get<std::string>().empty());
  const audit::LogVerdict verdict = Verify();
  EXPECT_TRUE(verdict.ok()) << verdict.findings.front().message;
}

// Being refused by the breaker is no denial that counts: a client that goes on asking is let in when the pause ends.
TEST_F(BreakerRecorder, ItsOwnRefusalsDoNotCount) {
  config_.policy = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Call("egress").outcome, "success");
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Call("egress").error_class, "policy.breaker");
  }
  ASSERT_TRUE(store::SetSwitch(*store_, store::TenantId::Local(),
                               {store::SwitchKind::kBreaker, "python:tester", false, "o", ""})
                  .ok());
  EXPECT_EQ(Call("").outcome, "success");
  EXPECT_EQ(tripped_.size(), 1U);
}

TEST_F(BreakerRecorder, ArgumentsThatDoNotFitCountWhereThatIsSaid) {
  auto refused = [this, asked = 0]() mutable {  // no two are the same
    return Refused(Asking("python", R"({"code": )" + std::to_string(++asked) + "}")).error_class;
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(refused(), "policy.args.schema") << "the control: by default they do not";
  }
  config_.policy = true;
  for (int i = 0; i < 5; ++i) {
    ToolRequest dry = Asking("python", R"({"code": )" + std::to_string(-i) + "}");
    dry.dry_run = true;
    EXPECT_EQ(Refused(dry).error_class, "policy.args.schema") << "a dry run never does";
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(refused(), "policy.args.schema");
  }
  EXPECT_EQ(refused(), "policy.breaker");
}

TEST(BreakerConfigFile, IsOffUnlessTheSectionIsThere) {
  EXPECT_EQ(ReadConfigText("", "f")->general.breaker, BreakerConfig{});
  EXPECT_EQ(ReadConfigText("", "f")->general.breaker.rule.denials, 0U);
  const Result<FileConfig> usual = ReadConfigText("[breaker]\n", "f");
  ASSERT_TRUE(usual.ok()) << usual.error().message;
  EXPECT_EQ(usual->general.breaker, On());
  EXPECT_EQ(usual->general.breaker.rule,
            (store::BreakerRule{3, std::chrono::minutes(10), std::chrono::minutes(10)}));
}

TEST(BreakerConfigFile, SaysWhatCountsAndForWhom) {
  const Result<FileConfig> config = ReadConfigText(R"(
[breaker]
denials = 5
within = "1h"
pause = "30m"
counts = ["isolation", "policy"]
[tenant.acme.breaker]
pause = "2h"
[tenant.free.breaker]
denials = 0
)",
                                                   "f");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const BreakerConfig& general = config->general.breaker;
  EXPECT_EQ(general.rule, (store::BreakerRule{5, std::chrono::hours(1), std::chrono::minutes(30)}));
  EXPECT_FALSE(general.egress);
  EXPECT_FALSE(general.incidents);
  EXPECT_TRUE(general.isolation);
  EXPECT_TRUE(general.policy);
  const BreakerConfig& acme = config->RulesOf(*store::TenantId::Parse("acme")).breaker;
  EXPECT_EQ(acme.rule, (store::BreakerRule{5, std::chrono::hours(1), std::chrono::hours(2)}));
  EXPECT_TRUE(acme.policy);
  EXPECT_EQ(config->RulesOf(*store::TenantId::Parse("free")).breaker.rule.denials, 0U);
  for (const char* wrong :
       {"[breaker]\ndenials = 101\n", "[breaker]\nwithin = \"25h\"\n",
        "[breaker]\npause = \"10ms\"\n", "[breaker]\ncounts = [\"syscalls\"]\n",
        "[breaker]\ncounts = []\n", "[breaker]\nwindow = \"1h\"\n", "breaker = 3\n"}) {
    EXPECT_FALSE(ReadConfigText(wrong, "f").ok()) << wrong;
  }
}

}  // namespace
}  // namespace coffer::call
