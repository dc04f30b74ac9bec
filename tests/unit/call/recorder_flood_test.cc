// SPDX-License-Identifier: Apache-2.0
//
// Refusals that a tenant makes without end: each has a receipt that verifies, few are written, and the log counts the others.
#include <set>

#include "store/call_list.h"
#include "tests/unit/call/recorder_fixture.h"

namespace coffer::call {
namespace {

// Each of a flood of refusals by a rate limit is answered with a receipt that verifies. Few are written, and the log says
// for how many each stood.
TEST_F(RecorderTest, EveryRefusalOfAFloodHasAReceiptAndFewAreWritten) {
  quotas_.tenant.calls = {{1, std::chrono::hours(1)}};
  std::variant<ReadyCall, ToolReply> first = ladder_->Climb(Asking("python", R"({"code":"1"})"));
  ASSERT_TRUE(std::holds_alternative<ReadyCall>(first));
  (void)Descend(std::get<ReadyCall>(first));
  constexpr int kFlood = 200;
  std::map<std::string, int64_t> answered;  // by the receipt's id
  for (int i = 0; i < kFlood; ++i) {
    const ToolReply reply = Refused(Asking("python", R"({"code":")" + std::to_string(i) + R"("})"));
    EXPECT_EQ(reply.refusal, ToolRefusal::kRateLimited);
    EXPECT_TRUE(reply.retry_after_seconds.has_value());
    ASSERT_TRUE(reply.log.has_value());
    const Status sealed = audit::VerifyReceipt(reply.receipt, log_->public_key());
    EXPECT_TRUE(sealed.ok()) << sealed.error().message;
    ++answered[reply.call_id];
  }
  EXPECT_FALSE(answered.contains(""));
  EXPECT_LT(answered.size(), kFlood / 2U);
  int shared = 0;
  for (const auto& [id, times] : answered) {
    Result<std::optional<store::Call>> row = store::FindCall(*store_, store::TenantId::Local(), id);
    ASSERT_TRUE(row.ok() && row->has_value());
    EXPECT_EQ((*row)->identity.tool, "python");
    EXPECT_EQ((*row)->identity.agent, "tester");
    if (times > 1) {
      ++shared;
      EXPECT_EQ((*row)->args_hash, "") << "it is not of one call";
      EXPECT_NE((*row)->error_message.find("stands for"), std::string::npos);
    }
  }
  EXPECT_GT(shared, 0);
  EndRecorder();  // writes what it has counted in this second too
  for (const Json& event : Events("refusals.counted")) {
    EXPECT_EQ(event.at("tenant"), "local");
    const Json& detail = event.at("detail");
    EXPECT_EQ(detail.at("agent"), "tester");
    EXPECT_EQ(detail.at("tool"), "python");
    EXPECT_EQ(detail.at("class"), "policy.rate");
    const std::string id = detail.at("call").get<std::string>();
    ASSERT_TRUE(answered.contains(id));
    EXPECT_EQ(answered.at(id), 1 + detail.at("count").get<int64_t>());
    --shared;
  }
  EXPECT_EQ(shared, 0) << "each that was shared is counted";
  EXPECT_TRUE(Verify().ok());
}

// Without any rate: refusals of every kind are recorded until the tenant's allowance is spent. From then on they are
// counted, and what is allowed runs on.
TEST_F(RecorderTest, RefusalsWithoutRatesMakeABoundedNumberOfRecords) {
  const auto refusal = [](uint64_t i) {  // no two are the same: what has just failed must wait
    ToolRequest rehearsal = Asking("python", R"({"code":"1"})");
    rehearsal.dry_run = true;
    const std::vector<ToolRequest> kinds = {
        Asking("no-such-tool", "{}"), Asking("python", "not json"),
        Asking("python", "{\"code\":" + std::to_string(i) + "}"), rehearsal};
    return kinds[i % kinds.size()];
  };
  constexpr uint64_t kAllowed = 30;
  constexpr uint64_t kAsked = 200;
  Begin({kAllowed, std::chrono::hours(1)});
  uint64_t later = 0;
  for (uint64_t i = 0; i < kAsked; ++i) {
    const ToolReply reply = Refused(refusal(i));
    const Status sealed = audit::VerifyReceipt(reply.receipt, log_->public_key());
    EXPECT_TRUE(sealed.ok()) << sealed.error().message;
    if (reply.refusal == ToolRefusal::kRateLimited) {
      EXPECT_EQ(reply.error_class, "policy.rate");
      EXPECT_GT(reply.retry_after_seconds.value_or(0), 0);
      ++later;
    } else {
      EXPECT_EQ(later, 0U) << "once it is spent, every refusal is one by a limit";
    }
  }
  EXPECT_GT(later, kAsked - kAllowed - 1);
  std::variant<ReadyCall, ToolReply> allowed = ladder_->Climb(Asking("python", R"({"code":"1"})"));
  ASSERT_TRUE(std::holds_alternative<ReadyCall>(allowed)) << "what is allowed runs";
  EXPECT_EQ(Descend(std::get<ReadyCall>(allowed)).outcome, "success");
  EndRecorder();
  const std::vector<Json> counts = Events("refusals.counted");
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].at("detail").at("agent"), RefusalFlood::kOthers);
  EXPECT_EQ(counts[0].at("detail").at("count").get<uint64_t>(), later - 1);
  const audit::LogVerdict verdict = Verify();
  EXPECT_TRUE(verdict.ok()) << verdict.findings.front().message;
  EXPECT_LE(verdict.records, kAllowed + 1 + 2) << "and the two of the call that ran";

  // The control: without the bound each refusal is a record.
  Begin({1'000'000, Nanos(1)});
  const uint64_t before = Verify().records;
  for (uint64_t i = kAsked; i < 2 * kAsked; ++i) {
    EXPECT_NE(Refused(refusal(i)).refusal, ToolRefusal::kRateLimited);
  }
  EXPECT_EQ(Verify().records, before + kAsked);
}

// A call that its parent does not allow is admitted before it is refused. A parent that runs can have any number of them.
TEST_F(RecorderTest, CallsThatTheirParentDoesNotAllowMakeABoundedNumberOfRecords) {
  policy::Tool beside = *shelf_.Find("python");
  beside.manifest.tool.name = "beside";
  policy::Tool elsewhere = beside;
  elsewhere.manifest.tool.name = "elsewhere";
  policy::FileMount data;
  data.host = dir_.MakeDir("data");
  data.at = "/data";
  elsewhere.manifest.mounts.push_back(data);
  shelf_.Replace({shelf_.Find("python"), std::make_shared<const policy::Tool>(beside),
                  std::make_shared<const policy::Tool>(elsewhere)});
  constexpr uint64_t kAllowed = 30;
  constexpr uint64_t kAsked = 200;
  const auto records_of_refusals = [&](RefusalFlood::Allowance allowance) {
    Begin(allowance);
    std::variant<ReadyCall, ToolReply> parent = ladder_->Climb(Asking("python", R"({"code":"1"})"));
    EXPECT_TRUE(std::holds_alternative<ReadyCall>(parent));
    const auto* const running = std::get_if<ReadyCall>(&parent);
    const uint64_t before = Verify().records;
    std::set<std::string> classes;
    for (uint64_t i = 0; running != nullptr && i < kAsked; ++i) {
      ToolRequest child = Asking("elsewhere", R"({"code":")" + std::to_string(i) + R"("})");
      child.identity.parent_id = running->call_id();
      const ToolReply reply = Refused(child);
      EXPECT_TRUE(audit::VerifyReceipt(reply.receipt, log_->public_key()).ok());
      classes.insert(reply.error_class);
    }
    EXPECT_TRUE(classes.contains("policy.narrow"));
    const uint64_t made = Verify().records - before;
    ToolRequest fits = Asking("beside", R"({"code":"2"})");
    fits.identity.parent_id = running == nullptr ? "" : running->call_id();
    std::variant<ReadyCall, ToolReply> child = ladder_->Climb(fits);
    EXPECT_TRUE(std::holds_alternative<ReadyCall>(child))
        << "what the parent allows runs: "
        << (child.index() == 1 ? std::get<ToolReply>(child).error_message : "");
    for (auto* climbed : {&parent, &child}) {
      if (auto* const ready = std::get_if<ReadyCall>(climbed)) {
        (void)Descend(*ready);
      }
    }
    return made;
  };
  EXPECT_EQ(records_of_refusals({1'000'000, Nanos(1)}), kAsked) << "NO-CONTROL";
  EXPECT_LE(records_of_refusals({kAllowed, std::chrono::hours(1)}), kAllowed + 2);
  EndRecorder();
  EXPECT_TRUE(Verify().ok());
}

}  // namespace
}  // namespace coffer::call
