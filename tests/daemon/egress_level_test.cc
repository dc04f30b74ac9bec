// SPDX-License-Identifier: Apache-2.0
//
// At the process level there is no network of a boundary's own, so a call that wants one is refused before anything runs. Its
// receipt says so: a denial with what to change.
#include <gtest/gtest.h>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

constexpr const char* kAtProcessLevel = "[isolation]\nlevel = \"process\"\n";

class DaemonEgressLevel : public DaemonEgress {
 protected:
  static void ExpectRefusal(const Json& receipt, const std::string& target) {
    EXPECT_EQ(receipt.value("outcome", ""), "denied") << receipt.dump();
    EXPECT_EQ(receipt["error"]["class"], "policy.egress") << receipt.dump();
    EXPECT_TRUE(receipt["started_at"].is_null()) << receipt.dump();
    EXPECT_TRUE(receipt["network"].empty()) << receipt.dump();
    ASSERT_EQ(receipt["denials"].size(), 1U) << receipt.dump();
    const Json& denial = receipt["denials"][0];
    EXPECT_EQ(denial["surface"], "egress");
    EXPECT_EQ(denial["target"], target);
    EXPECT_EQ(denial["rule"], "policy.egress");
    EXPECT_EQ(denial["reason"], "network needs the container level");
    EXPECT_TRUE(Contains(denial["fix"], "isolation.level = \"container\"")) << denial.dump();
    EXPECT_TRUE(Contains(denial["fix"], "leave out --level process")) << denial.dump();
  }
};

TEST_F(DaemonEgressLevel, OfARunIsInItsReceipt) {
  const Strings curl = {"curl", "-sS", "https://" + Api() + "/v1/x"};
  const Strings rules = {"--allow", Api(), "--allow", "other.test"};
  const RunResult control = RunWith(rules, curl);
  EXPECT_TRUE(Contains(control.out, "hello /v1/x")) << "NO-CONTROL\n" << control.Describe();
  EXPECT_TRUE(Receipt()["denials"].empty());
  (void)Seen();
  Strings flags = rules;
  flags.insert(flags.end(), {"--level", "process"});
  RunResult run = RunWith(flags, curl);
  EXPECT_EQ(run.exit, 120) << run.Describe();
  EXPECT_EQ(Seen(), "") << "OPEN";
  ExpectRefusal(Receipt(), Api() + ", other.test");
  // Recorded and sealed, it says the same.
  flags.insert(flags.end(), {"--state", dir_.path() + "/state"});
  run = RunWith(flags, curl);
  EXPECT_EQ(run.exit, 120) << run.Describe();
  const Json sealed = Receipt();
  ExpectRefusal(sealed, Api() + ", other.test");
  EXPECT_FALSE(sealed["signature"].is_null()) << sealed.dump();
  // Without a network the level is as good as before.
  run = RunBare({"--level", "process"}, {"true"});
  EXPECT_EQ(run.exit, 0) << run.Describe();
  EXPECT_TRUE(Receipt()["denials"].empty());
}

TEST_F(DaemonEgressLevel, OfAToolIsInItsReceipt) {
  Declare("reader", Plain("api.test"), kAtProcessLevel);
  Declare("inside", Plain("api.test"));
  Declare("silent", "", kAtProcessLevel);
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Call("inside", Ask("api.test"))), "hello")) << "NO-CONTROL";
  (void)Seen();
  const HttpAnswer answer = Call("reader", Ask("api.test"));
  EXPECT_EQ(answer.Outcome(), "denied") << answer.text;
  EXPECT_EQ(answer.DeniedBy(), "policy.egress") << answer.text;
  EXPECT_EQ(Seen(), "") << "OPEN";
  ExpectRefusal(ReceiptOf(answer), "network");
  // The agent is told too.
  ASSERT_EQ(answer.body["denials"].size(), 1U) << answer.text;
  EXPECT_EQ(answer.body["denials"][0]["surface"], "egress");
  // A call of the same tool that wants no network runs, and so does a tool that has none.
  EXPECT_EQ(Call("reader", "true", {{"network", Json::array()}}).Outcome(), "success");
  EXPECT_EQ(Call("silent", "true").Outcome(), "success");
}

TEST_F(DaemonEgressLevel, OfAToolWithoutADaemonIsInItsReceipt) {
  Declare("reader", Plain("api.test"), kAtProcessLevel);
  Declare("inside", Plain("api.test"));
  const auto call = [&](const std::string& tool) {
    RunOptions options;
    options.timeout = Seconds(60);
    return RunProgram({CofferPath(), "call", "--json", "--tools", daemon_.tools(), "--config",
                       file_, "--state", dir_.path() + "/state", "--args",
                       Json{{"script", kClient + Ask("api.test")}}.dump(), tool},
                      options);
  };
  const RunResult control = call("inside");
  EXPECT_TRUE(Contains(control.out, "hello /v1/x")) << "NO-CONTROL\n" << control.Describe();
  (void)Seen();
  const RunResult refused = call("reader");
  EXPECT_NE(refused.exit, 0) << refused.Describe();
  EXPECT_EQ(Seen(), "") << "OPEN";
  const Json answer = Json::parse(refused.out, nullptr, false);
  ASSERT_TRUE(answer.is_object() && answer.contains("call_id")) << refused.Describe();
  const RunResult shown = RunProgram({CofferPath(), "audit", "show", answer["call_id"], "--json",
                                      "--state", dir_.path() + "/state"});
  EXPECT_TRUE(Contains(shown.out, "network needs the container level")) << shown.Describe();
  EXPECT_TRUE(Contains(shown.out, "\"egress\"")) << shown.Describe();
}

}  // namespace
}  // namespace coffer::test
