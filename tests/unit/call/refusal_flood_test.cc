// SPDX-License-Identifier: Apache-2.0
//
// Every refusal has a receipt, its own or one that is shared; how many are written is bounded, and none is forgotten.
#include "call/refusal_flood.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

constexpr Nanos kStart = std::chrono::hours(1);
constexpr Nanos kSecond = std::chrono::seconds(1);

RefusalFlood::Whose Of(const std::string& tenant, const std::string& agent) {
  return {*store::TenantId::Parse(tenant), agent, "python", "policy.rate"};
}

// Does what a recorder does. Returns the id of the receipt.
class Writer {
 public:
  std::string Refuse(const RefusalFlood::Whose& whose, Nanos now) {
    const RefusalFlood::Answer answer = flood.Take(whose, now);
    if (answer.shared) {
      return answer.shared->call_id;
    }
    const std::string id = "call-" + std::to_string(++written);
    if (answer.stands_for) {
      flood.Share(*answer.stands_for, {id, "receipt of " + id, {}}, now);
    }
    return id;
  }

  explicit Writer(RefusalFlood::Allowance allowance = {}) : flood(allowance) {}

  RefusalFlood flood;
  uint64_t written = 0;
};

constexpr RefusalFlood::Allowance kNoBound{1'000'000'000, Nanos(1)};

TEST(RefusalFlood, AFewHaveTheirOwnAndTheOthersShareOneOfTheirAgent) {
  Writer writer;
  std::map<std::string, int> receipts;
  for (int i = 0; i < 100; ++i) {
    ++receipts[writer.Refuse(Of("acme", i % 2 == 0 ? "a" : "b"), kStart)];
  }
  EXPECT_EQ(receipts.size(), RefusalFlood::kPerSecond + 2) << "one for a, one for b";
  EXPECT_EQ(receipts.at("call-21"), 40);
  EXPECT_EQ(receipts.at("call-22"), 40);
  EXPECT_FALSE(writer.flood.Take(Of("other", "a"), kStart).shared) << "each tenant its own";
  EXPECT_TRUE(writer.flood.TakeCounts(kStart).empty()) << "the second is not over";

  const std::vector<RefusalFlood::Counted> counts = writer.flood.TakeCounts(kStart + kSecond);
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts[0].whose, Of("acme", "a"));
  EXPECT_EQ(counts[0].call_id, "call-21");
  EXPECT_EQ(counts[0].count, 39U) << "beside the one for which it was written";
  EXPECT_EQ(counts[1].count, 39U);
  EXPECT_EQ(writer.flood.waiting(), 0U);
  EXPECT_FALSE(writer.flood.Take(Of("acme", "a"), kStart + kSecond).shared) << "a new second";
}

// Nobody is answered with a receipt of another second, and a second that nobody asked about is still counted.
TEST(RefusalFlood, AReceiptIsSharedWithinItsSecond) {
  Writer writer;
  std::string last;
  for (int second = 0; second < 3; ++second) {
    for (uint32_t i = 0; i < RefusalFlood::kPerSecond + 5; ++i) {
      const std::string id = writer.Refuse(Of("acme", "a"), kStart + second * kSecond);
      EXPECT_TRUE(i != 0 || id != last);
      last = id;
    }
  }
  EXPECT_EQ(writer.written, 3U * (RefusalFlood::kPerSecond + 1));
  const std::vector<RefusalFlood::Counted> counts = writer.flood.TakeCounts(kStart + 9 * kSecond);
  ASSERT_EQ(counts.size(), 3U);
  for (size_t second = 0; second < 3; ++second) {
    EXPECT_EQ(counts[second].count, 4U);
    EXPECT_EQ(counts[second].since, kStart + static_cast<int64_t>(second) * kSecond);
  }
}

// Two are being written at the same time: each is a receipt, and one of them is shared from then on.
TEST(RefusalFlood, TheFirstThatIsWrittenIsShared) {
  Writer writer;
  for (uint32_t i = 0; i < RefusalFlood::kPerSecond; ++i) {
    writer.Refuse(Of("acme", "a"), kStart);
  }
  const RefusalFlood::Answer one = writer.flood.Take(Of("acme", "a"), kStart);
  const RefusalFlood::Answer two = writer.flood.Take(Of("acme", "a"), kStart);
  ASSERT_TRUE(one.stands_for && two.stands_for);
  writer.flood.Share(*two.stands_for, {"two", "", {}}, kStart);
  writer.flood.Share(*one.stands_for, {"one", "", {}}, kStart);
  EXPECT_EQ(writer.Refuse(Of("acme", "a"), kStart), "two");
}

// Names come from agents: their number must not decide how much is written or kept.
TEST(RefusalFlood, HowManyAreWrittenIsBoundedAndTheirSumIsNot) {
  Writer writer;
  constexpr uint64_t kMany = 10'000;
  for (uint64_t i = 0; i < kMany; ++i) {
    writer.Refuse(Of("acme", std::to_string(i)), kStart);
  }
  EXPECT_EQ(writer.written, RefusalFlood::kPerSecond + RefusalFlood::kMostShared + 1);
  uint64_t sum = 0;
  for (const RefusalFlood::Counted& counted : writer.flood.TakeCounts(kStart + kSecond)) {
    sum += counted.count;
  }
  EXPECT_EQ(sum + writer.written, kMany);
}

// 100 refusals a second for an hour. Without the bound 21 receipts and a count are written for each second of it.
TEST(RefusalFlood, AnHourOfRefusalsMakesNoMoreRecordsThanAllowed) {
  constexpr RefusalFlood::Allowance kAllowance{500, std::chrono::seconds(5)};
  constexpr int kSeconds = 3600;
  for (const bool bounded : {true, false}) {
    Writer writer(bounded ? kAllowance : kNoBound);
    uint64_t counts = 0, counted = 0;
    const auto say = [&](Nanos now) {
      for (const RefusalFlood::Counted& one : writer.flood.TakeCounts(now)) {
        ++counts;
        counted += one.count;
      }
    };
    for (int second = 0; second < kSeconds; ++second) {
      const Nanos now = kStart + second * kSecond;
      say(now);
      for (int i = 0; i < 100; ++i) {
        EXPECT_NE(writer.Refuse(Of("acme", "a"), now), "");
      }
    }
    say(Nanos::max());
    EXPECT_EQ(writer.written + counted, 100U * kSeconds) << "each has a receipt or is in a count";
    const uint64_t records = writer.written + counts;
    if (bounded) {
      EXPECT_LE(records, kAllowance.records + kSeconds / 5 + 2);
      EXPECT_GE(records, kAllowance.records + kSeconds / 5 - 4) << "all that is allowed is used";
    } else {
      EXPECT_EQ(records, 22U * kSeconds) << "the control";
    }
  }
}

TEST(RefusalFlood, OneTenantUsesUpNothingOfAnother) {
  Writer writer({10, std::chrono::seconds(5)});
  const store::TenantId acme = Of("acme", "a").tenant, other = Of("other", "a").tenant;
  EXPECT_EQ(writer.flood.WaitFor(acme, kStart), Nanos(0));
  // Refusals that are written one by one, as those for other reasons than a limit are.
  for (int i = 0; i < 9; ++i) {
    writer.flood.Charge(acme, kStart);
  }
  EXPECT_EQ(writer.flood.WaitFor(acme, kStart), std::chrono::seconds(5));
  EXPECT_EQ(writer.flood.WaitFor(other, kStart), Nanos(0));
  EXPECT_EQ(writer.Refuse(Of("other", "a"), kStart), "call-1");
  const std::string shared = writer.Refuse(Of("acme", "a"), kStart);
  EXPECT_EQ(writer.Refuse(Of("acme", "b"), kStart + kSecond), shared) << "for all its agents";
  EXPECT_EQ(writer.Refuse(Of("other", "a"), kStart), "call-3");

  // Three records too many: after fifteen seconds two are allowed again.
  EXPECT_TRUE(writer.flood.TakeCounts(kStart + 14 * kSecond).empty()) << "it is shared still";
  EXPECT_EQ(writer.flood.WaitFor(acme, kStart + 14 * kSecond), kSecond);
  const std::vector<RefusalFlood::Counted> counts = writer.flood.TakeCounts(kStart + 15 * kSecond);
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].call_id, shared);
  EXPECT_EQ(counts[0].count, 1U);
  EXPECT_EQ(writer.flood.WaitFor(acme, kStart + 15 * kSecond), Nanos(0));
  EXPECT_NE(writer.Refuse(Of("acme", "a"), kStart + 15 * kSecond), shared);
}

}  // namespace
}  // namespace coffer::call
