// SPDX-License-Identifier: Apache-2.0
#include "store/quota.h"

#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

using policy::RateLimits;

class QuotaTest : public StoreTest {
 protected:
  AdmitVerdict Verdict(const AdmitRequest& request) { return Admit(request).verdict; }
};

TEST_F(QuotaTest, ARateHoldsAcrossARestartAndSaysWhenToComeBack) {
  AdmitRequest request = Request();
  request.quotas.tool.calls = {{3, minutes(1)}};
  for (int i = 0; i < 3; ++i) {
    Run(request);
  }
  Reopen();
  const Admission fourth = Admit(request);
  EXPECT_EQ(fourth.verdict, AdmitVerdict::kRateLimited);
  EXPECT_EQ(fourth.error_class, "policy.rate");
  EXPECT_NE(fourth.reason.find("3/m"), std::string::npos) << fourth.reason;
  EXPECT_GT(fourth.RetryAfterSeconds(), 50);
  EXPECT_LE(fourth.RetryAfterSeconds(), 62);
  Pass(seconds(fourth.RetryAfterSeconds()));
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted);
}

TEST_F(QuotaTest, RatesOfTenantAgentAndToolAreSeparate) {
  AdmitRequest request = Request();
  request.quotas.tool.calls = {{1, hours(1)}};
  Run(request);
  EXPECT_EQ(Verdict(request), AdmitVerdict::kRateLimited);
  request.identity.tool = "other";
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted);
  request.identity.tool = "python";
  request.identity.tenant = b_;
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted) << "no tenant uses up another's";

  AdmitRequest of_agent = Request("third");
  of_agent.quotas.agent.calls = {{1, hours(1)}};
  Run(of_agent);
  of_agent.identity.tool = "fourth";
  EXPECT_EQ(Verdict(of_agent), AdmitVerdict::kRateLimited);
  of_agent.identity.agent = "second-bot";
  EXPECT_EQ(Verdict(of_agent), AdmitVerdict::kAdmitted);

  AdmitRequest of_tenant = Request("fifth");
  of_tenant.quotas.tenant.calls = {{1, hours(1)}};
  Run(of_tenant);
  of_tenant.identity.agent = "third-bot";
  of_tenant.identity.tool = "sixth";
  EXPECT_EQ(Verdict(of_tenant), AdmitVerdict::kRateLimited);
}

TEST_F(QuotaTest, ABurstIsARateOfItsOwn) {
  AdmitRequest request = Request();
  request.quotas.tenant = RateLimits{{{100, minutes(1)}}, 2, 0};
  Run(request);
  Run(request);
  const Admission third = Admit(request);
  EXPECT_EQ(third.verdict, AdmitVerdict::kRateLimited);
  EXPECT_NE(third.reason.find("burst of 2"), std::string::npos) << third.reason;
  Pass(seconds(2));
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted);
}

TEST_F(QuotaTest, AClockThatWasSetBackDoesNotLockAnybodyOut) {
  AdmitRequest request = Request();
  request.quotas.tool.calls = {{1, minutes(1)}};
  Pass(hours(24 * 365));
  Run(request);
  EXPECT_EQ(Verdict(request), AdmitVerdict::kRateLimited);
  ahead_ = Nanos(0);
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted);
}

TEST_F(QuotaTest, ConcurrencyCountsWhatHasNotEnded) {
  AdmitRequest request = Request();
  request.quotas.tool.concurrency = 2;
  const std::string first = Admitted(request);
  const std::string second = Admitted(request);
  const Admission third = Admit(request);
  EXPECT_EQ(third.verdict, AdmitVerdict::kRateLimited);
  EXPECT_EQ(third.RetryAfterSeconds(), 1);
  Must(GateCall(store(), a_, first, {}));
  const std::string fourth = Admitted(request);  // who waits for a person does not run
  EXPECT_EQ(Verdict(request), AdmitVerdict::kRateLimited);
  Record(second);
  Start(second);
  Finish(second);
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted);
}

TEST_F(QuotaTest, ATenantsBudgetAddsUpAndStartsAnew) {
  AdmitRequest request = Request();
  request.quotas.tenant_budget = {.cpu = seconds(10), .period = hours(1)};
  const std::string id = Admitted(request);
  Record(id);
  Start(id);
  CallEnd end;
  end.outcome = Outcome::kSuccess;
  end.cpu = seconds(11);
  end.bytes_out = 5;
  Must(FinishCall(store(), a_, id, end));
  EXPECT_EQ(Must(test::TenantSpent(store(), a_)), (Spent{1, 0, seconds(11), 5}));
  Reopen();
  const Admission no = Admit(request);
  EXPECT_EQ(no.verdict, AdmitVerdict::kBudgetSpent);
  EXPECT_GT(no.RetryAfterSeconds(), 3500);
  EXPECT_LE(no.RetryAfterSeconds(), 3600);
  Pass(hours(1));
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted);
  EXPECT_EQ(Must(test::TenantSpent(store(), a_)), (Spent{1, 0, Nanos(0), 0}));
}

TEST_F(QuotaTest, EachBudgetStops) {
  const Budget budgets[] = {{.calls = 1}, {.cpu = seconds(1)}, {.bytes_out = 10}};
  for (const Budget& budget : budgets) {
    const std::string session =
        Must(CreateSession(store(), a_, {.agent = "bot", .lifetime = hours(1), .budget = budget}))
            .id;
    AdmitRequest request = Request();
    request.identity.session_id = session;
    const std::string id = Admitted(request);
    Record(id);
    Start(id);
    CallEnd end;
    end.outcome = Outcome::kSuccess;
    end.cpu = seconds(1);
    end.bytes_out = 10;
    Must(FinishCall(store(), a_, id, end));
    EXPECT_EQ(Verdict(request), AdmitVerdict::kBudgetSpent);
  }
}

TEST_F(QuotaTest, TheThirdIdenticalFailureInARowWaits) {
  AdmitRequest request = Request();
  request.args_hash = "sha256:same";
  request.quotas.retry_cooldown = seconds(30);
  Run(request, Outcome::kError);
  Run(request, Outcome::kError);
  const Admission third = Admit(request);
  EXPECT_EQ(third.verdict, AdmitVerdict::kRetryTooSoon);
  EXPECT_GT(third.RetryAfterSeconds(), 20);
  EXPECT_NE(third.reason.find("2 times"), std::string::npos) << third.reason;
  AdmitRequest changed = request;
  changed.args_hash = "sha256:other";
  EXPECT_EQ(Verdict(changed), AdmitVerdict::kAdmitted);
  AdmitRequest other_agent = request;
  other_agent.identity.agent = "second-bot";
  EXPECT_EQ(Verdict(other_agent), AdmitVerdict::kAdmitted);
  AdmitRequest never = request;
  never.quotas.retry_cooldown = Nanos(0);
  EXPECT_EQ(Verdict(never), AdmitVerdict::kAdmitted) << "rate.retry = off";
  Pass(seconds(31));
  Run(request, Outcome::kError);
  EXPECT_EQ(Verdict(request), AdmitVerdict::kRetryTooSoon) << "it has failed again";
  Pass(seconds(31));
  Run(request, Outcome::kSuccess);
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted) << "what succeeded may be repeated";
}

TEST_F(QuotaTest, WhatSucceededSinceLetsAFailureBeTriedAgain) {
  AdmitRequest tests = Request();
  tests.args_hash = "sha256:tests";
  tests.quotas.retry_cooldown = hours(1);
  AdmitRequest edit = Request();
  edit.args_hash = "sha256:edit";
  const auto fail = [&] {
    Pass(seconds(1));
    Run(tests, Outcome::kError);
  };
  fail();
  fail();
  EXPECT_EQ(Verdict(tests), AdmitVerdict::kRetryTooSoon);
  // What fails changes nothing, and another agent's success is not this one's.
  Pass(seconds(1));
  Run(edit, Outcome::kError);
  EXPECT_EQ(Verdict(tests), AdmitVerdict::kRetryTooSoon);
  AdmitRequest other = edit;
  other.identity.agent = "second-bot";
  Run(other, Outcome::kSuccess);
  EXPECT_EQ(Verdict(tests), AdmitVerdict::kRetryTooSoon);

  Pass(seconds(1));
  Run(edit, Outcome::kSuccess);
  fail();  // run again at once; the row begins anew
  fail();
  EXPECT_EQ(Verdict(tests), AdmitVerdict::kRetryTooSoon);
  // A file that was written is as good as a call.
  Pass(seconds(1));
  Must(NoteProgress(store(), a_, tests.identity.agent));
  fail();
  EXPECT_EQ(Verdict(tests), AdmitVerdict::kAdmitted);
}

TEST_F(QuotaTest, RetriesHaveABudget) {
  AdmitRequest request = Request();
  request.args_hash = "sha256:same";
  request.quotas.tenant_budget.retries = 2;
  Run(request, Outcome::kTerminated);
  Run(request, Outcome::kTerminated);
  Run(request, Outcome::kTerminated);
  EXPECT_EQ(Verdict(request), AdmitVerdict::kBudgetSpent);
  request.args_hash = "sha256:new";
  EXPECT_EQ(Verdict(request), AdmitVerdict::kAdmitted) << "not a retry";
}

TEST_F(QuotaTest, ADenialCountsAsAFailure) {
  AdmitRequest request = Request();
  request.args_hash = "sha256:same";
  request.quotas.retry_cooldown = seconds(30);
  CallEnd end;
  end.outcome = Outcome::kDenied;
  Must(RefuseCall(store(), a_, Admitted(request), end));
  Must(RefuseCall(store(), a_, Admitted(request), end));
  EXPECT_EQ(Verdict(request), AdmitVerdict::kRetryTooSoon);
}

}  // namespace
}  // namespace coffer::store
