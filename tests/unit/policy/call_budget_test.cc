// SPDX-License-Identifier: Apache-2.0
#include "policy/call_budget.h"

#include <gtest/gtest.h>

namespace coffer::policy {
namespace {

using std::chrono::seconds;

Limits Maker() {
  Limits limits;
  limits.cpu = seconds(10);
  limits.wall = seconds(30);
  limits.memory = 100 << 20;
  return limits;
}

TEST(CallBudget, WallTimeIsWhatTheMakerHasLeft) {
  const CallBudget budget(Maker(), 5, seconds(130));
  EXPECT_EQ(budget.Left(seconds(100))->wall, Nanos(seconds(30)));
  EXPECT_EQ(budget.Left(seconds(120))->wall, Nanos(seconds(10)));
  EXPECT_EQ(budget.Left(seconds(50))->wall, Nanos(seconds(30))) << "never more than the limit";
  EXPECT_EQ(budget.Left(seconds(130)).error().code, "limit.wall");
  EXPECT_EQ(budget.Left(seconds(500)).error().code, "limit.wall");
}

TEST(CallBudget, CpuTimeIsSharedByAllCallsAndUnusedTimeComesBack) {
  CallBudget budget(Maker(), 5, seconds(1000));
  Limits granted = *budget.Left(Nanos(0));
  granted.cpu = seconds(6);
  granted.memory = 10 << 20;
  budget.Begin("a", granted);
  EXPECT_EQ(budget.Left(Nanos(0))->cpu, Nanos(seconds(4)));
  budget.End("a", seconds(1));
  EXPECT_EQ(budget.Left(Nanos(0))->cpu, Nanos(seconds(9)));
  budget.End("a", seconds(5));
  EXPECT_EQ(budget.Left(Nanos(0))->cpu, Nanos(seconds(9))) << "a call ends once";
  budget.Begin("b", granted);
  budget.End("b", seconds(100));
  EXPECT_EQ(budget.Left(Nanos(0)).error().code, "limit.cpu");
}

TEST(CallBudget, MemoryIsSharedByThoseThatRun) {
  CallBudget budget(Maker(), 5, seconds(1000));
  Limits wanted = Maker();
  wanted.cpu = seconds(1);
  wanted.memory = 60 << 20;
  EXPECT_TRUE(budget.Fits(wanted));
  budget.Begin("a", wanted);
  EXPECT_FALSE(budget.Fits(wanted)) << "it waits for its turn";
  EXPECT_EQ(budget.Left(Nanos(0))->memory, 40U << 20);
  budget.End("a", Nanos(0));
  EXPECT_TRUE(budget.Fits(wanted));
  wanted.memory = 1ULL << 40;
  EXPECT_TRUE(budget.Fits(wanted)) << "alone it begins, with what there is";
  EXPECT_EQ(budget.Left(Nanos(0))->memory, 100U << 20);
}

TEST(CallBudget, RequestsAreCounted) {
  CallBudget budget(Maker(), 2, seconds(1000));
  EXPECT_TRUE(budget.CountRequest());
  EXPECT_TRUE(budget.CountRequest());
  EXPECT_FALSE(budget.CountRequest());
  EXPECT_FALSE(budget.CountRequest());
}

TEST(CallBudget, ACallThatCallsTakesItsRequestsFromHere) {
  CallBudget budget(Maker(), 9, seconds(1000));
  EXPECT_TRUE(budget.CountRequest());
  EXPECT_EQ(budget.TakeRequests(100), 4U) << "half of what is left";
  EXPECT_EQ(budget.TakeRequests(1), 1U) << "no more than it wants";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(budget.CountRequest());
  }
  EXPECT_FALSE(budget.CountRequest());
  EXPECT_EQ(budget.TakeRequests(100), 0U);
}

}  // namespace
}  // namespace coffer::policy
