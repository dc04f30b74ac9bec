// SPDX-License-Identifier: Apache-2.0
#include "store/session.h"

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class SessionTest : public StoreTest {
 protected:
  Session Make(const TenantId& tenant, Nanos lifetime = minutes(30)) {
    return Must(CreateSession(store(), tenant,
                              {.agent = "bot", .lifetime = lifetime, .budget = {.calls = 100}}));
  }
  size_t Count(SessionFilter filter) {
    return Must(ListSessions(store(), a_, filter, {})).rows.size();
  }
};

TEST_F(SessionTest, IsFoundAsItWasMade) {
  const Session made = Make(a_);
  Reopen();
  const Session found = Must(FindSession(store(), a_, made.id)).value();
  EXPECT_EQ(found.agent, "bot");
  EXPECT_EQ(found.created_at, made.created_at);
  EXPECT_EQ(found.ends_at, made.created_at + minutes(30));
  EXPECT_EQ(found.workspace, made.workspace);
  EXPECT_EQ(found.budget, made.budget);
  EXPECT_EQ(found.ended_at, std::nullopt);
  EXPECT_EQ(found.workspace.find('/'), std::string::npos);
  EXPECT_NE(Make(a_).workspace, made.workspace);
}

TEST_F(SessionTest, KeepsItsLabelAndIsFoundByWhoeverSeesAllTenants) {
  const Session made =
      Must(CreateSession(store(), b_, {.agent = "bot", .budget = {}, .label = "build 7"}));
  Reopen();
  EXPECT_EQ(Must(FindSession(store(), b_, made.id))->label, "build 7");
  EXPECT_EQ(Must(FindSession(store(), AllTenants{}, made.id))->tenant, b_);
  EXPECT_FALSE(Must(FindSession(store(), a_, made.id)).has_value());
  EXPECT_FALSE(CreateSession(store(), a_, {.agent = "bot", .label = std::string(201, 'x')}).ok());
}

TEST_F(SessionTest, EndsOnceAndNamesWhatWasUnderWay) {
  const Session made = Make(a_);
  AdmitRequest request = Request();
  request.identity.session_id = made.id;
  const std::string ended = Run(request);
  const std::string open = Admitted(request);
  Admitted(Request());  // of no session
  const EndedSession first = Must(EndSession(store(), a_, made.id, "ended by operator"));
  EXPECT_EQ(first.open_calls, std::vector<std::string>{open});
  EXPECT_EQ(first.session.end_reason, "ended by operator");
  EXPECT_EQ(first.session.spent.calls, 2u);
  Pass(minutes(1));
  const EndedSession second = Must(EndSession(store(), a_, made.id, "again"));
  EXPECT_EQ(second.session.end_reason, "ended by operator");
  EXPECT_EQ(second.session.ended_at, first.session.ended_at);
  EXPECT_EQ(second.open_calls, first.open_calls) << "so that a cancel can be repeated";
  EXPECT_EQ(Code(EndSession(store(), b_, made.id, "theft")), "policy.session");
  EXPECT_EQ(Code(EndSession(store(), a_, "made-up", "x")), "policy.session");
}

TEST_F(SessionTest, EndsByTime) {
  const Session soon = Make(a_, minutes(5));
  const Session later = Make(b_, minutes(10));
  EXPECT_TRUE(Must(EndExpiredSessions(store(), AllTenants())).empty());
  Pass(minutes(5));
  EXPECT_EQ(Count(SessionFilter::kOpen), 0u) << "even before the timer comes by";
  const std::vector<EndedSession> ended = Must(EndExpiredSessions(store(), AllTenants()));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].session.id, soon.id);
  EXPECT_EQ(ended[0].session.end_reason, "lifetime");
  EXPECT_TRUE(Must(EndExpiredSessions(store(), AllTenants())).empty());
  Pass(minutes(5));
  EXPECT_EQ(Must(EndExpiredSessions(store(), AllTenants()))[0].session.id, later.id);
}

TEST_F(SessionTest, IsListedNewestFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    ids.insert(ids.begin(), Make(a_).id);
  }
  std::sort(ids.rbegin(), ids.rend());  // within a millisecond ids are in no order
  Make(b_);
  Must(EndSession(store(), a_, ids[2], "test"));
  EXPECT_EQ(Count(SessionFilter::kOpen), 4u);
  EXPECT_EQ(Must(ListSessions(store(), AllTenants(), SessionFilter::kAll, {})).rows.size(), 6u);
  std::vector<std::string> seen;
  PageRequest page{2, ""};
  do {
    const Page<Session> some = Must(ListSessions(store(), a_, SessionFilter::kAll, page));
    for (const Session& session : some.rows) {
      seen.push_back(session.id);
    }
    page.cursor = some.next;
  } while (!page.cursor.empty());
  EXPECT_EQ(seen, ids);
}

TEST_F(SessionTest, NeedsALifetimeAndATenant) {
  EXPECT_EQ(Code(CreateSession(store(), a_, {.agent = "bot", .lifetime = Nanos(0), .budget = {}})),
            "policy.session");
  EXPECT_EQ(Code(CreateSession(store(), Id("nobody"), {.agent = "bot", .budget = {}})),
            "policy.tenant");
}

}  // namespace
}  // namespace coffer::store
