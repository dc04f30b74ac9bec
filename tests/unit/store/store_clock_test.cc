// SPDX-License-Identifier: Apache-2.0
//
// The clock is set by a day, in either direction: no lease, window, quota or retention becomes longer or shorter. The
// controls are the same stores with a clock that is simply believed.
#include "store/store_clock.h"

#include <sqlite3.h>

#include "store/outbox.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

constexpr Nanos kDay = hours(24);
constexpr Nanos kStart = hours(24 * 365 * 50);

class ClockTest : public ::testing::Test {
 protected:
  ClockTest() { Open(); }
  void Open() {
    store_.reset();
    StoreOptions options;
    options.fsync = false;
    options.wall = [this] { return kStart + passed_ + set_; };
    options.uptime = [this] { return hours(1) + passed_; };
    options.boot_id = boot_;
    if (believed_) {
      options.clock = options.wall;
    }
    store_ = std::make_unique<Store>(Must(Store::Open(dir_ / boot_, options)));
    Must(EnsureTenant(*store_, a_));
  }
  void Believe() {
    believed_ = true;
    Open();
  }
  void Pass(Nanos time) { passed_ += time; }
  void SetClock(Nanos by) { set_ += by; }
  // After one call in it.
  void EndASession() {
    SessionRequest request;
    request.agent = "bot";
    const Session session = Must(CreateSession(*store_, a_, request));
    EXPECT_EQ(session.created_at, store_->Now());
    AdmitRequest call;
    call.identity.tenant = a_;
    call.identity.agent = "bot";
    call.identity.tool = "python";
    call.identity.session_id = session.id;
    EXPECT_EQ(Must(AdmitCall(*store_, call)).verdict, AdmitVerdict::kAdmitted);
    Must(EndSession(*store_, a_, session.id, "test"));
  }
  // How many sessions have spent something.
  int Spent() {
    sqlite3* db = nullptr;
    EXPECT_EQ(::sqlite3_open((dir_ / boot_ + "/coffer.db").c_str(), &db), SQLITE_OK);
    sqlite3_stmt* count = nullptr;
    EXPECT_EQ(::sqlite3_prepare_v2(db, "SELECT count(*) FROM spent WHERE scope = 'session'", -1,
                                   &count, nullptr),
              SQLITE_OK);
    EXPECT_EQ(::sqlite3_step(count), SQLITE_ROW);
    const int rows = ::sqlite3_column_int(count, 0);
    ::sqlite3_finalize(count);
    ::sqlite3_close(db);
    return rows;
  }

  test::TempDir dir_;
  const TenantId a_ = Id("a");
  std::string boot_ = "one";
  Nanos passed_{0};
  Nanos set_{0};
  bool believed_ = false;
  std::unique_ptr<Store> store_;
};

class ClockJumps : public ClockTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(ADay, ClockJumps, ::testing::Values(-1, 1),
                         [](const auto& given) { return given.param < 0 ? "Back" : "Forward"; });

TEST_P(ClockJumps, ASessionEndsAtItsTime) {
  SessionRequest request;
  request.agent = "bot";
  request.lifetime = minutes(30);
  const Session session = Must(CreateSession(*store_, a_, request));
  const auto ended = [&] { return Must(EndExpiredSessions(*store_, AllTenants{})).size() == 1; };
  Pass(minutes(10));
  SetClock(GetParam() * kDay);
  EXPECT_FALSE(ended());
  Pass(minutes(19));
  EXPECT_FALSE(ended());
  Pass(minutes(2));
  EXPECT_TRUE(ended());
}

TEST_P(ClockJumps, AKeyExpiresAtItsTime) {
  KeyRequest request;
  request.agent = "bot";
  request.lifetime = hours(2);
  const NewKey key = Must(CreateKey(*store_, a_, request));
  const auto valid = [&] { return Must(CheckKey(*store_, key.text)).state == KeyState::kValid; };
  SetClock(GetParam() * kDay);
  Pass(minutes(115));
  EXPECT_TRUE(valid());
  Pass(minutes(10));
  EXPECT_FALSE(valid());
}

TEST_P(ClockJumps, ARateWindowAndABudgetGoOn) {
  AdmitRequest request;
  request.identity.tenant = a_;
  request.identity.agent = "bot";
  request.identity.tool = "python";
  request.quotas.tenant.calls = {{3, hours(1)}};
  request.quotas.tenant_budget.calls = 4;
  request.quotas.tenant_budget.period = hours(3);
  const auto verdict = [&] { return Must(AdmitCall(*store_, request)).verdict; };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(verdict(), AdmitVerdict::kAdmitted);
  }
  SetClock(GetParam() * kDay);
  EXPECT_EQ(verdict(), AdmitVerdict::kRateLimited) << "a jump gave the rate back";
  Pass(minutes(125));  // a sliding window is over after twice its length at most
  EXPECT_EQ(verdict(), AdmitVerdict::kAdmitted);
  EXPECT_EQ(verdict(), AdmitVerdict::kBudgetSpent) << "a jump gave the budget back";
  Pass(minutes(70));
  EXPECT_EQ(verdict(), AdmitVerdict::kAdmitted) << "a jump kept the budget spent";
}

TEST_P(ClockJumps, RetentionKeepsAndForgets) {
  AdmitRequest request;
  request.identity.tenant = a_;
  request.identity.agent = "bot";
  request.identity.tool = "python";
  const std::string call = Must(AdmitCall(*store_, request)).call_id;
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.receipt = "{}";
  end.result = "{}";
  Must(RefuseCall(*store_, a_, call, end));
  Retention retention;
  retention.calls = retention.results = hours(26);
  SetClock(GetParam() * kDay);
  Pass(hours(25));
  EXPECT_EQ(Must(Prune(*store_, a_, retention)).calls, 0U);
  Pass(minutes(90));
  EXPECT_EQ(Must(Prune(*store_, a_, retention)).calls, 1U);
}

TEST_P(ClockJumps, AnEndedSessionIsForgottenAtItsTime) {
  SetClock(GetParam() * kDay);
  EndASession();
  EXPECT_EQ(Spent(), 1) << "the control";
  Retention retention;
  retention.sessions = hours(24);
  Pass(hours(23));
  EXPECT_EQ(Must(Prune(*store_, a_, retention)).sessions, 0U);
  EXPECT_EQ(Spent(), 1);
  Pass(hours(2));
  EXPECT_EQ(Must(Prune(*store_, a_, retention)).sessions, 1U) << "its row is kept longer";
  EXPECT_EQ(Spent(), 0) << "what it has spent is kept longer";
}

TEST_P(ClockJumps, ANotificationIsTriedAgainAtItsTime) {
  const std::string receivers[] = {"one", "two"};
  Must(AddToOutbox(*store_, receivers, a_.name(), "{}"));
  const auto due = [&](const char* receiver) {
    return Must(ListDue(*store_, AllTenants{}, receiver, 10));
  };
  const std::vector<OutboxRow> first = due("one");
  ASSERT_EQ(first.size(), 1U);
  const int64_t ids[] = {first[0].id};
  Must(Postpone(*store_, AllTenants{}, ids, store_->Now() + hours(1)));
  SetClock(GetParam() * kDay);
  EXPECT_EQ(due("one").size(), 0U);
  EXPECT_EQ(due("two").size(), 1U) << "what is due stays due";
  Pass(minutes(55));
  EXPECT_EQ(due("one").size(), 0U);
  Pass(minutes(10));
  EXPECT_EQ(due("one").size(), 1U);
}

// The control: with a clock that is believed, both jumps do what they are said not to.
TEST_F(ClockTest, ABelievedClockWouldExtendAndLose) {
  Believe();
  SessionRequest request;
  request.agent = "bot";
  request.lifetime = minutes(30);
  Must(CreateSession(*store_, a_, request));
  SetClock(kDay);
  EXPECT_EQ(Must(EndExpiredSessions(*store_, AllTenants{})).size(), 1U) << "lost";
  Must(CreateSession(*store_, a_, request));
  SetClock(-kDay);
  Pass(hours(2));
  EXPECT_EQ(Must(EndExpiredSessions(*store_, AllTenants{})).size(), 0U) << "extended";
  const std::string receivers[] = {"one"};
  Must(AddToOutbox(*store_, receivers, a_.name(), "{}"));
  const auto due = [&] { return Must(ListDue(*store_, AllTenants{}, "one", 10)); };
  const int64_t ids[] = {due().at(0).id};
  Must(Postpone(*store_, AllTenants{}, ids, store_->Now() + hours(1)));
  SetClock(kDay);
  EXPECT_EQ(due().size(), 1U) << "too early";
  Must(Postpone(*store_, AllTenants{}, ids, store_->Now() + hours(1)));
  SetClock(-kDay);
  Pass(hours(2));
  EXPECT_EQ(due().size(), 0U) << "a day late";
}

TEST_F(ClockTest, ABelievedClockWouldKeepAnEndedSession) {
  Believe();
  SetClock(kDay);
  EndASession();
  SetClock(-kDay);
  Retention retention;
  retention.sessions = hours(24);
  Pass(hours(25));
  EXPECT_EQ(Must(Prune(*store_, a_, retention)).sessions, 0U);
  EXPECT_EQ(Spent(), 1);
}

TEST_F(ClockTest, AnotherProcessHasTheSameTime) {
  Pass(hours(1));
  SetClock(kDay);
  const Nanos before = store_->Now();
  Open();
  EXPECT_EQ(store_->Now(), before);
  EXPECT_LT(before - kStart, hours(1) + minutes(1));
}

TEST_F(ClockTest, FollowsTheWallClockSlowly) {
  SetClock(hours(1));
  for (int i = 0; i < 24; ++i) {
    const Nanos before = store_->Now();
    Pass(hours(1));
    Must(store_->Maintain());
    const Nanos went = store_->Now() - before;
    EXPECT_GT(went, minutes(60));
    EXPECT_LT(went, minutes(62));
  }
  for (int i = 0; i < 24 * 6; ++i) {
    Pass(hours(1));
    Must(store_->Maintain());
  }
  EXPECT_LT(kStart + passed_ + set_ - store_->Now(), minutes(1)) << "it has caught up";
}

TEST_F(ClockTest, AClockThatWasNeverRightIsFollowedAtOnce) {
  SetClock(kDay * 3000);
  EXPECT_EQ(store_->Now(), kStart + kDay * 3000);
}

TEST_F(ClockTest, AfterARestartOfTheHostTimeDoesNotGoBack) {
  Pass(hours(10));
  Must(store_->Maintain());
  const Nanos last = store_->Now();
  store_.reset();
  // The same store, another boot, a clock that stands a day earlier.
  StoreOptions options;
  options.fsync = false;
  options.wall = [&] { return last - kDay; };
  options.uptime = [] { return seconds(5); };
  options.boot_id = "two";
  const Store again = Must(Store::Open(dir_ / "one", options));
  EXPECT_GE(again.Now(), last);
}

}  // namespace
}  // namespace coffer::store
