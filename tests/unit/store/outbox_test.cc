// SPDX-License-Identifier: Apache-2.0
#include "store/outbox.h"

#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class OutboxTest : public StoreTest {
 protected:
  std::vector<OutboxRow> Due(const std::string& receiver, uint32_t limit = 100) {
    return Must(ListDue(store(), AllTenants{}, receiver, limit));
  }
  std::vector<std::string> Bodies(const std::string& receiver, uint32_t limit = 100) {
    std::vector<std::string> bodies;
    for (const OutboxRow& row : Due(receiver, limit)) {
      bodies.push_back(row.body);
    }
    return bodies;
  }
  void Add(const std::string& receiver, const std::string& body) {
    const std::string to[] = {receiver};
    Must(AddToOutbox(store(), to, a_.name(), body));
  }
  uint64_t Count() { return Must(test::CountOutbox(store())); }
};

using Strings = std::vector<std::string>;

TEST_F(OutboxTest, EachReceiverHasItsOwnRow) {
  const std::string both[] = {"one", "two"};
  Must(AddToOutbox(store(), both, a_.name(), "{}"));
  Must(AddToOutbox(store(), {}, a_.name(), "{}"));
  EXPECT_EQ(Count(), 2U);
  const std::vector<OutboxRow> rows = Due("one");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].tenant, a_.name());
  EXPECT_EQ(rows[0].body, "{}");
  EXPECT_EQ(rows[0].attempts, 0U);
  const int64_t ids[] = {rows[0].id};
  Must(RemoveSent(store(), AllTenants{}, ids));
  EXPECT_EQ(Due("one").size(), 0U);
  EXPECT_EQ(Due("two").size(), 1U);
  EXPECT_EQ(Due("three").size(), 0U);
}

TEST_F(OutboxTest, TheEndOfACallAndItsRowAreOneThing) {
  const std::string id = Admitted(Request());
  Record(id);
  Start(id);
  CallEnd end;
  end.outcome = Outcome::kSuccess;
  end.send_to = {"one", "two"};
  Must(FinishCall(store(), a_, id, end));
  EXPECT_EQ(Bodies("one"), Strings{OutboxCallBody(id)});
  EXPECT_EQ(Bodies("two"), Strings{OutboxCallBody(id)});
  // An end that is not written leaves no row either.
  EXPECT_NE(Code(FinishCall(store(), a_, id, end)), "");
  EXPECT_EQ(Count(), 2U);
  // A refusal, also of something that was never admitted, is an end as well.
  const std::string refused = Admitted(Request());
  end.outcome = Outcome::kDenied;
  end.send_to = {"one"};
  Must(RefuseCall(store(), a_, refused, end));
  Must(AddRefusedCall(store(), Request(), "0190d8f0-0000-7000-8000-000000000009", end));
  EXPECT_EQ(Count(), 4U);
  // Whoever is not to be told is not: the control.
  Run(Request());
  EXPECT_EQ(Count(), 4U);
}

TEST_F(OutboxTest, WhatWaitsIsStillThereAfterARestart) {
  Add("one", "1");
  Reopen();
  EXPECT_EQ(Bodies("one"), Strings{"1"});
}

TEST_F(OutboxTest, OldestFirstAndNotBeforeItsTime) {
  for (const char* const body : {"1", "2", "3"}) {
    Add("one", body);
  }
  EXPECT_EQ(Bodies("one"), (Strings{"1", "2", "3"}));
  EXPECT_EQ(Bodies("one", 2), (Strings{"1", "2"}));
  const int64_t first[] = {Due("one")[0].id};
  Must(Postpone(store(), AllTenants{}, first, store().Now() + seconds(60)));
  EXPECT_EQ(Bodies("one"), (Strings{"2", "3"}));
  Pass(seconds(59));
  EXPECT_EQ(Bodies("one"), (Strings{"2", "3"}));
  Pass(seconds(1));
  EXPECT_EQ(Bodies("one"), (Strings{"2", "3", "1"}));
  EXPECT_EQ(Due("one")[2].attempts, 1U);
  EXPECT_EQ(Due("one")[0].attempts, 0U);
}

TEST_F(OutboxTest, TheOldestGoWhenThereAreTooMany) {
  for (int i = 0; i < 20; ++i) {
    Add(i % 2 == 0 ? "one" : "two", std::to_string(i));
  }
  EXPECT_EQ(Must(TrimOutbox(store(), AllTenants{}, 20)), 0U);
  EXPECT_EQ(Must(TrimOutbox(store(), AllTenants{}, 6)), 14U);
  EXPECT_EQ(Bodies("one"), (Strings{"14", "16", "18"}));
  EXPECT_EQ(Bodies("two"), (Strings{"15", "17", "19"}));
  // Gaps between the ids are not rows.
  std::vector<int64_t> middle;
  for (const OutboxRow& row : Due("one")) {
    middle.push_back(row.id);
  }
  middle.erase(middle.begin());
  Must(RemoveSent(store(), AllTenants{}, middle));
  EXPECT_EQ(Must(TrimOutbox(store(), AllTenants{}, 4)), 0U);
  EXPECT_EQ(Count(), 4U);
  EXPECT_EQ(Must(TrimOutbox(store(), AllTenants{}, 0)), 4U);
  EXPECT_EQ(Must(TrimOutbox(store(), AllTenants{}, 0)), 0U);
}

TEST_F(OutboxTest, ReceiversThatAreNoMoreAreForgotten) {
  for (const char* const receiver : {"one", "two", "two", "three"}) {
    Add(receiver, "x");
  }
  const std::string left[] = {"one", "four"};
  EXPECT_EQ(Must(ForgetOtherReceivers(store(), AllTenants{}, left)), 3U);
  EXPECT_EQ(Count(), 1U);
  EXPECT_EQ(Bodies("one"), Strings{"x"});
}

}  // namespace
}  // namespace coffer::store
