// SPDX-License-Identifier: Apache-2.0
//
// What the log has of a call is found wherever it stands, and no more of the log is read than may have it.
#include "audit/log/call_records.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "audit/log/records.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "tests/support/run.h"

namespace coffer::audit {
namespace {

class CallRecordsTest : public ::testing::Test {
 protected:
  template <typename Record>
  void Add(const std::string& call, Nanos at, const std::string& agent) {
    Record record;
    record.at = at;
    record.identity.call_id = call;
    record.identity.tenant = store::TenantId::Local();
    record.identity.agent = agent;
    if constexpr (requires { record.outcome; }) {
      record.outcome = "denied";
    }
    text_ += FormatLeaf(record)->Line(seq_++) + "\n";
  }
  // More than is read at once, of other calls.
  void AddMany(Nanos at) {
    const size_t until = text_.size() + (10 << 20);
    while (text_.size() < until) {
      Add<DecisionRecord>("other", at, std::string(60'000, 'a'));
      text_ += "= a checkpoint\n";
    }
  }
  CallRecords Find(const std::string& call, Nanos since = Nanos::min()) {
    const std::string path = dir_.Write("records", text_);
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    CallRecordsByKey sought;
    const std::string key = CallKey("local", call);
    sought[key];
    EXPECT_TRUE(ReadCallRecords(file.get(), text_.size(), since, sought).ok());
    return sought[key];
  }

  test::TempDir dir_;
  std::string text_ = "# a header\n";
  uint64_t seq_ = 0;
};

TEST_F(CallRecordsTest, TheFirstOfEachKindIsFoundWhereverItStands) {
  AddMany(Nanos(1));
  Add<DecisionRecord>("c", Nanos(2), "decided");
  Add<ReceiptRecord>("c", Nanos(3), "first");
  AddMany(Nanos(3));
  Add<ReceiptRecord>("c", Nanos(4), "second");
  AddMany(Nanos(5));
  const CallRecords found = Find("c");
  EXPECT_TRUE(test::Contains(found.decision, "\"agent\":\"decided\"")) << found.decision;
  EXPECT_TRUE(test::Contains(found.receipt, "\"agent\":\"first\"")) << found.receipt;
  EXPECT_EQ(Find("d").decision, "") << "the control";
}

TEST_F(CallRecordsTest, ACallWithoutADecisionIsFoundToo) {
  Add<ReceiptRecord>("c", Nanos(2), "only");
  AddMany(Nanos(3));
  EXPECT_TRUE(test::Contains(Find("c").receipt, "\"agent\":\"only\""));
  EXPECT_EQ(Find("c").decision, "");
}

TEST_F(CallRecordsTest, WhatIsOlderIsNotRead) {
  Add<ReceiptRecord>("c", Nanos(2), "only");
  AddMany(Nanos(3));
  AddMany(Nanos(3));
  AddMany(Nanos(9));
  EXPECT_EQ(Find("c", Nanos(5)).receipt, "");
  Add<ReceiptRecord>("e", Nanos(3), "with an older time");
  AddMany(Nanos(9));
  EXPECT_NE(Find("e", Nanos(5)).receipt, "") << "a single record says nothing of those before it";
  EXPECT_NE(Find("c", Nanos(2)).receipt, "") << "the control";
}

TEST(IdTime, IsThatOfTheId) {
  const Nanos time = std::chrono::milliseconds(1'800'000'000'123);
  EXPECT_EQ(IdTime(*NewId(time)), time);
  for (const char* other : {"", "made-up", "01890000-0000-4000-8000-000000000001",
                            "0189g000-0000-7000-8000-000000000001"}) {
    EXPECT_EQ(IdTime(other), Nanos::min()) << other;
  }
  EXPECT_GT(IdTime("ffffffff-ffff-7000-8000-000000000001"), time) << "and it does not overflow";
}

}  // namespace
}  // namespace coffer::audit
