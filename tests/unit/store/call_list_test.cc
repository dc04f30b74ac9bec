// SPDX-License-Identifier: Apache-2.0
#include "store/call_list.h"

#include <algorithm>

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class CallListTest : public StoreTest {
 protected:
  std::vector<std::string> All(const CallFilter& filter, size_t limit = 50) {
    std::vector<std::string> ids;
    PageRequest page{limit, ""};
    do {
      const Page<Call> some = Must(ListCalls(store(), a_, filter, page));
      EXPECT_LE(some.rows.size(), std::max<size_t>(limit, 1));
      for (const Call& call : some.rows) {
        ids.push_back(call.identity.call_id);
      }
      page.cursor = some.next;
    } while (!page.cursor.empty());
    return ids;
  }
};

TEST_F(CallListTest, PagesHoldEveryCallOnceNewestFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(Run(Request()));
  }
  std::sort(ids.rbegin(), ids.rend());
  for (const size_t limit : {0, 1, 3, 5, 10, 11}) {
    EXPECT_EQ(All({}, limit), ids) << limit;
  }
}

TEST_F(CallListTest, NewCallsDoNotDisturbAPage) {
  for (int i = 0; i < 4; ++i) {
    Run(Request());
  }
  const Page<Call> first = Must(ListCalls(store(), a_, {}, {2, ""}));
  Run(Request());
  const Page<Call> second = Must(ListCalls(store(), a_, {}, {2, first.next}));
  ASSERT_EQ(second.rows.size(), 2u);
  EXPECT_LT(second.rows[0].identity.call_id, first.rows[1].identity.call_id);
  EXPECT_EQ(second.next, "");
}

TEST_F(CallListTest, WhoeverSeesAllTenantsFindsACallByItsId) {
  AdmitRequest of_b = Request();
  of_b.identity.tenant = b_;
  const std::string id = Admitted(of_b);
  EXPECT_EQ(Must(FindCall(store(), AllTenants{}, id))->identity.tenant, b_);
  EXPECT_FALSE(Must(FindCall(store(), a_, id)).has_value());
  EXPECT_FALSE(Must(FindCall(store(), AllTenants{}, "x")).has_value());
}

TEST_F(CallListTest, FiltersAreAllApplied) {
  const std::string session = Must(CreateSession(store(), a_, {.agent = "bot", .budget = {}})).id;
  AdmitRequest in_session = Request();
  in_session.identity.session_id = session;
  AdmitRequest by_other = Request();
  by_other.identity.agent = "other";
  const std::string plain = Run(Request());
  const std::string with_session = Run(in_session);
  const std::string other_agent = Run(by_other);
  const std::string other_tool = Run(Request("bash"));
  const std::string failed = Run(Request(), Outcome::kError);
  Pass(minutes(1));
  const Nanos later = store().Now();
  const std::string open = Admitted(Request());
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.error_class = "policy.args";
  const std::string denied = Admitted(Request());
  Must(RefuseCall(store(), a_, denied, end));

  const auto only = [&](const CallFilter& filter) {
    const std::vector<std::string> found = All(filter);
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " calls";
  };
  EXPECT_EQ(only({.session_id = session}), with_session);
  EXPECT_EQ(only({.agent = "other"}), other_agent);
  EXPECT_EQ(only({.tool = "bash"}), other_tool);
  EXPECT_EQ(only({.error_class = "policy.args"}), denied);
  EXPECT_EQ(only({.state = CallState::kAdmitted}), open);
  EXPECT_EQ(only({.outcome = Outcome::kError}), failed);
  EXPECT_EQ(All({.since = later}).size(), 2u);
  EXPECT_EQ(All({.until = later}).size(), 5u);
  EXPECT_EQ(only({.state = CallState::kRefused, .since = later}), denied);
  EXPECT_EQ(All({.tool = "bash", .state = CallState::kRefused}).size(), 0u);
  EXPECT_EQ(All({}).size(), 7u);
  EXPECT_EQ(All({.tool = "' OR 1=1 --"}).size(), 0u);
}

TEST_F(CallListTest, OpenCallsAreThoseThatHaveNotEnded) {
  Run(Request());
  const std::string open = Admitted(Request());
  const std::vector<Call> found = Must(OpenCalls(store(), a_));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].identity.call_id, open);
  AdmitRequest foreign = Request();
  foreign.identity.tenant = b_;
  Admitted(foreign);
  EXPECT_EQ(Must(OpenCalls(store(), AllTenants())).size(), 2u);
}

}  // namespace
}  // namespace coffer::store
