// SPDX-License-Identifier: Apache-2.0
//
// Nothing that was taken is forgotten: it was to be written, or it is in a count.
#include "call/refusal_flood.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

constexpr Nanos kStart = std::chrono::hours(1);

TEST(RefusalFlood, AFewAreWrittenAndTheOthersCountedByWhose) {
  RefusalFlood flood;
  uint32_t written = 0;
  for (int i = 0; i < 100; ++i) {
    written += flood.Take("acme", i % 2 == 0 ? "a" : "b", "python", "policy.rate", kStart) ? 1 : 0;
  }
  EXPECT_EQ(written, RefusalFlood::kPerSecond);
  EXPECT_TRUE(flood.Take("other", "a", "python", "policy.rate", kStart)) << "each tenant its own";
  EXPECT_TRUE(flood.TakeCounts(kStart).empty()) << "the second is not over";
  const std::vector<RefusalFlood::Counted> counts =
      flood.TakeCounts(kStart + std::chrono::seconds(1));
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts[0].agent, "a");
  EXPECT_EQ(counts[0].count + counts[1].count, 80U);
  EXPECT_EQ(flood.waiting(), 0U);
  EXPECT_TRUE(flood.Take("acme", "a", "python", "policy.rate", kStart + std::chrono::seconds(1)))
      << "a new second";
}

TEST(RefusalFlood, WhatCouldNotBeWrittenIsCountedOn) {
  RefusalFlood flood;
  for (uint32_t i = 0; i < RefusalFlood::kPerSecond + 5; ++i) {
    (void)flood.Take("acme", "a", "t", "policy.rate", kStart);
  }
  const std::vector<RefusalFlood::Counted> counts =
      flood.TakeCounts(kStart + std::chrono::seconds(1));
  ASSERT_EQ(counts.size(), 1U);
  flood.PutBack(counts[0]);
  for (uint32_t i = 0; i < RefusalFlood::kPerSecond + 2; ++i) {
    (void)flood.Take("acme", "a", "t", "policy.rate", kStart + std::chrono::seconds(9));
  }
  const std::vector<RefusalFlood::Counted> both =
      flood.TakeCounts(kStart + std::chrono::seconds(10));
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both[0].count, 7U);
  EXPECT_EQ(both[0].since, kStart);
  EXPECT_EQ(both[0].until, kStart + std::chrono::seconds(9));
}

// Names come from agents: their number must not be ours.
TEST(RefusalFlood, ItsMemoryIsBoundedAndItsSumIsNot) {
  RefusalFlood flood;
  constexpr uint64_t kMany = 10'000;
  uint64_t written = 0;
  for (uint64_t i = 0; i < kMany; ++i) {
    written += flood.Take("acme", std::to_string(i), "t", "policy.rate", kStart) ? 1 : 0;
  }
  const std::vector<RefusalFlood::Counted> counts =
      flood.TakeCounts(kStart + std::chrono::seconds(1));
  EXPECT_LE(counts.size(), RefusalFlood::kMostCounts + 1);
  uint64_t sum = 0;
  for (const RefusalFlood::Counted& counted : counts) {
    sum += counted.count;
  }
  EXPECT_EQ(sum + written, kMany);
}

}  // namespace
}  // namespace coffer::call
