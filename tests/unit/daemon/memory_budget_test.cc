// SPDX-License-Identifier: Apache-2.0
#include "daemon/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/run.h"

namespace coffer::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Asked until it looks again.
bool PastSoon(MemoryBudget& budget, bool expected) {
  return test::WaitUntil([&] { return budget.Past() == expected; }, test::Seconds(5));
}

TEST(MemoryBudget, IsPastFromItsLimitUntilItIsWellBelow) {
  std::optional<uint64_t> used = 10 * kMiB;
  MemoryBudget budget(80 * kMiB, [&] { return used; });
  EXPECT_FALSE(budget.Past());
  used = 80 * kMiB;
  EXPECT_TRUE(PastSoon(budget, true));
  used = 75 * kMiB;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(budget.Past()) << "it would go on and off";
  used = 69 * kMiB;
  EXPECT_TRUE(PastSoon(budget, false));
}

TEST(MemoryBudget, IsWellPastAnEighthAndFarPastAQuarterAboveItsLimit) {
  std::optional<uint64_t> used = 89 * kMiB;
  MemoryBudget budget(80 * kMiB, [&] { return used; });
  EXPECT_TRUE(budget.Past());
  EXPECT_FALSE(budget.WellPast());
  used = 99 * kMiB;
  EXPECT_TRUE(test::WaitUntil([&] { return budget.Past() && budget.WellPast(); }));
  EXPECT_FALSE(budget.FarPast());
  used = 100 * kMiB;
  EXPECT_TRUE(test::WaitUntil([&] { return budget.Past() && budget.FarPast(); }));
  used = 60 * kMiB;
  EXPECT_TRUE(PastSoon(budget, false));
  EXPECT_FALSE(budget.WellPast());
  EXPECT_FALSE(budget.FarPast());
}

TEST(MemoryBudget, WhatCannotBeReadIsTooMuch) {
  MemoryBudget budget(80 * kMiB, [] { return std::nullopt; });
  EXPECT_TRUE(budget.Past());
}

TEST(MemoryBudget, StatmIsResidentWithoutShared) {
  EXPECT_EQ(ParseStatm("10000 300 100 1 0 2 0\n", 4096), 200U * 4096);
  for (const char* wrong : {"", "1", "1 2", "a b c", "1 2 3 4"}) {
    EXPECT_FALSE(ParseStatm(wrong, 4096).has_value()) << wrong;
  }
  const std::optional<uint64_t> own = OwnMemory();
  ASSERT_TRUE(own.has_value());
  EXPECT_GT(*own, 0U);
}

TEST(MemoryBudget, StaysBelowTheKernelsLimit) {
  EXPECT_EQ(BudgetWithin(std::nullopt), kGatewayMemory);
  EXPECT_EQ(BudgetWithin(uint64_t{64} << 30), kGatewayMemory);
  EXPECT_EQ(BudgetWithin(100 * kMiB), 75 * kMiB);
}

}  // namespace
}  // namespace coffer::daemon
