// SPDX-License-Identifier: Apache-2.0
#include "store/breaker.h"

#include "store/core.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class BreakerTest : public StoreTest {
 protected:
  CallIdentity Who(const TenantId& tenant, const std::string& tool, const std::string& agent) {
    CallIdentity call;
    call.tenant = tenant;
    call.tool = tool;
    call.agent = agent;
    call.call_id = "call-" + std::to_string(++calls_);
    return call;
  }
  std::optional<Pause> Denied() {
    return Must(CountDenied(store(), Who(a_, "python", "bot"), rule_));
  }
  void Trip() {
    EXPECT_FALSE(Denied().has_value());
    EXPECT_FALSE(Denied().has_value());
    ASSERT_TRUE(Denied().has_value());
  }
  Admission Try(const TenantId& tenant, const std::string& tool, const std::string& agent) {
    AdmitRequest request;
    request.identity.tenant = tenant;
    request.identity.tool = tool;
    request.identity.agent = agent;
    return Admit(request);
  }
  bool Paused() { return Try(a_, "python", "bot").verdict == AdmitVerdict::kPaused; }
  int64_t Rows(const char* count) {
    return Must(store().core().Read([&](Connection& db) { return db.Number(count); }));
  }
  Status Lift(const TenantId& tenant, const std::string& name) {
    return SetSwitch(store(), tenant, {SwitchKind::kBreaker, name, false, "olga", ""});
  }

  BreakerRule rule_{3, minutes(10), minutes(5)};
  int calls_ = 0;
};

TEST_F(BreakerTest, TheCallThatReachesTheNumberPausesTheNextOne) {
  EXPECT_FALSE(Denied().has_value());
  EXPECT_FALSE(Denied().has_value());
  EXPECT_FALSE(Paused()) << "the control: two are not three";
  const std::optional<Pause> pause = Denied();
  ASSERT_TRUE(pause.has_value());
  EXPECT_EQ(pause->at, store().Now());
  EXPECT_EQ(pause->until, store().Now() + minutes(5));
  const Admission next = Try(a_, "python", "bot");
  EXPECT_EQ(next.verdict, AdmitVerdict::kPaused);
  EXPECT_EQ(next.error_class, "policy.breaker");
  EXPECT_EQ(next.retry_after, minutes(5));
  EXPECT_NE(next.reason.find(FormatTime(pause->until)), std::string::npos) << next.reason;
}

TEST_F(BreakerTest, NoOtherPairIsPaused) {
  Trip();
  EXPECT_TRUE(Paused()) << "the control";
  EXPECT_EQ(Try(a_, "python", "other").verdict, AdmitVerdict::kAdmitted);
  EXPECT_EQ(Try(a_, "bash", "bot").verdict, AdmitVerdict::kAdmitted);
  EXPECT_EQ(Try(b_, "python", "bot").verdict, AdmitVerdict::kAdmitted);
}

// Denials of one pair add nothing to those of another.
TEST_F(BreakerTest, EachPairIsCountedForItself) {
  const CallIdentity others[] = {Who(a_, "python", "other"), Who(a_, "bash", "bot"),
                                 Who(b_, "python", "bot")};
  for (int i = 0; i < 2; ++i) {
    for (CallIdentity other : others) {
      other.call_id += std::to_string(i);
      EXPECT_FALSE(Must(CountDenied(store(), other, rule_)).has_value());
    }
    EXPECT_FALSE(Denied().has_value());
  }
  EXPECT_TRUE(Denied().has_value()) << "the control: its own third";
}

TEST_F(BreakerTest, TheWindowHasItsEdges) {
  EXPECT_FALSE(Denied().has_value());
  Pass(minutes(1));
  EXPECT_FALSE(Denied().has_value());
  Pass(minutes(9));  // the first is as old as the window: no longer in it
  EXPECT_FALSE(Denied().has_value());
  Pass(minutes(1) - Nanos(1));  // the second is in it for one nanosecond more
  EXPECT_TRUE(Denied().has_value());
}

TEST_F(BreakerTest, APauseEndsByItselfAndCountingStartsFromNothing) {
  Trip();
  Pass(minutes(5) - Nanos(1));
  EXPECT_TRUE(Paused());
  Pass(Nanos(1));
  EXPECT_FALSE(Paused());
  EXPECT_TRUE(Must(ListSwitches(store(), a_)).empty());
  Trip();
  EXPECT_TRUE(Paused());
}

// Calls of the pair that were already running end with denials of their own.
TEST_F(BreakerTest, NothingIsCountedWhileItIsPaused) {
  Trip();
  Pass(minutes(4));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Denied().has_value());
  }
  Pass(minutes(1));
  EXPECT_FALSE(Paused()) << "it was prolonged";
  EXPECT_FALSE(Denied().has_value()) << "they were counted";
}

TEST_F(BreakerTest, ACallCountsOnce) {
  const CallIdentity call = Who(a_, "python", "bot");
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Must(CountDenied(store(), call, rule_)).has_value());
  }
}

TEST_F(BreakerTest, WithoutANumberNothingIsCounted) {
  rule_.denials = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Denied().has_value());
  }
  EXPECT_EQ(Rows("SELECT count(*) FROM denied_calls"), 0);
}

TEST_F(BreakerTest, KeepsFewRows) {
  rule_ = {100, minutes(10), minutes(5)};
  for (int i = 0; i < 99; ++i) {
    EXPECT_FALSE(Denied().has_value());
  }
  EXPECT_EQ(Rows("SELECT count(*) FROM denied_calls"), 99);
  EXPECT_TRUE(Denied().has_value());
  EXPECT_EQ(Rows("SELECT count(*) FROM denied_calls"), 0);
  for (int i = 0; i < 500; ++i) {  // as many as may be, one after the other
    Pass(minutes(6));
    (void)Denied();
    ASSERT_LE(Rows("SELECT count(*) FROM denied_calls"), 2);
  }
  Pass(hours(49));
  Must(Prune(store(), AllTenants{}, Retention{}));
  EXPECT_EQ(Rows("SELECT count(*) FROM denied_calls"), 0);
  EXPECT_EQ(Rows("SELECT count(*) FROM pauses"), 0);
}

TEST_F(BreakerTest, IsASwitchOfItsTenantWithAnEnd) {
  Trip();
  Reopen();
  EXPECT_TRUE(Paused()) << "a restart lifted it";
  const std::vector<Switch> seen = Must(ListSwitches(store(), a_));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].kind, SwitchKind::kBreaker);
  EXPECT_EQ(seen[0].name, "python:bot");
  EXPECT_EQ(seen[0].tenant, a_);
  EXPECT_TRUE(seen[0].on);
  EXPECT_EQ(seen[0].until, store().Now() + minutes(5));
  EXPECT_EQ(seen[0].why, "3 calls were denied something within 600s");
  EXPECT_TRUE(Must(ListSwitches(store(), b_)).empty());
  EXPECT_EQ(Must(ListSwitches(store(), AllTenants{})).size(), 1U);
  EXPECT_TRUE(Must(IsSwitchedOn(store(), a_, SwitchKind::kBreaker, "python:bot")));
  EXPECT_FALSE(Must(IsSwitchedOn(store(), b_, SwitchKind::kBreaker, "python:bot")));
  EXPECT_FALSE(Must(IsSwitchedOn(store(), a_, SwitchKind::kBreaker, "python")));
}

TEST_F(BreakerTest, IsLiftedForItsTenantOnly) {
  Trip();
  Must(Lift(b_, "python:bot"));
  Must(Lift(a_, "bash:bot"));
  Must(Lift(a_, "python"));
  EXPECT_TRUE(Paused()) << "the control";
  Must(Lift(a_, "python:bot"));
  EXPECT_FALSE(Paused());
  EXPECT_FALSE(Denied().has_value()) << "what was counted before is gone";
}

// A host that starts with a clock that is years ahead, and then learns the time.
TEST_F(BreakerTest, AClockThatWasYearsAheadPausesNobodyForYears) {
  const auto ahead = hours(24 * 800);
  rule_.pause = hours(24);
  Pass(ahead);
  EXPECT_FALSE(Denied().has_value());
  EXPECT_FALSE(Denied().has_value());
  for (int i = 0; i < 3; ++i) {
    (void)Must(CountDenied(store(), Who(a_, "python", "early"), rule_));
  }
  EXPECT_EQ(Try(a_, "python", "early").verdict, AdmitVerdict::kPaused) << "the control";
  EXPECT_EQ(Must(ListSwitches(store(), a_)).size(), 1U) << "the control";
  Pass(-ahead);
  EXPECT_EQ(Try(a_, "python", "early").verdict, AdmitVerdict::kAdmitted);
  EXPECT_TRUE(Must(ListSwitches(store(), a_)).empty());
  EXPECT_FALSE(Denied().has_value()) << "the others are of another time";
  EXPECT_FALSE(Denied().has_value());
  EXPECT_TRUE(Denied().has_value()) << "the control: three of this time";
}

// An agent's name may have colons, a tool's has none.
TEST_F(BreakerTest, IsFoundByANameWithColons) {
  for (int i = 0; i < 3; ++i) {
    (void)Must(CountDenied(store(), Who(a_, "python", "svc:ci:7"), rule_));
  }
  EXPECT_EQ(Try(a_, "python", "svc:ci:7").verdict, AdmitVerdict::kPaused);
  Must(Lift(a_, "python:svc:ci:7"));
  EXPECT_EQ(Try(a_, "python", "svc:ci:7").verdict, AdmitVerdict::kAdmitted);
}

TEST_F(BreakerTest, CannotBeSetByACaller) {
  EXPECT_EQ(Code(SetSwitch(store(), a_, {SwitchKind::kBreaker, "python:bot", true, "o", "x"})),
            "policy.switch");
  EXPECT_FALSE(Paused());
}

// What runs goes on: the killer of running calls asks FindSwitch.
TEST_F(BreakerTest, IsNoSwitchForCallsThatRun) {
  const int64_t before = Must(SwitchGeneration(store()));
  Trip();
  EXPECT_EQ(Must(FindSwitch(store(), a_, {"python", "bot", ""})), std::nullopt);
  EXPECT_EQ(Must(FindStop(store(), a_, "bot")), std::nullopt);
  EXPECT_EQ(Must(SwitchGeneration(store())), before);
}

// A client that lost the answer asks again with its key, also when that call was the one too many.
TEST_F(BreakerTest, ARepetitionIsStillAnswered) {
  AdmitRequest request = Request();
  request.idempotency_key = "once";
  request.request_hash = "h";
  (void)Run(request);
  Trip();
  EXPECT_TRUE(Paused()) << "the control";
  EXPECT_EQ(Admit(request).verdict, AdmitVerdict::kReplay);
}

}  // namespace
}  // namespace coffer::store
