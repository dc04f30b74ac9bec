// SPDX-License-Identifier: Apache-2.0
//
// All calls together, and a tenant's share of them.
#include "call/host_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace coffer::call {
namespace {

constexpr uint64_t kMiB = 1ULL << 20;

std::vector<HostBudget::Seat> TakeAll(HostBudget& budget, const std::string& tenant,
                                      uint64_t memory) {
  std::vector<HostBudget::Seat> seats;
  for (int i = 0; i < 1000; ++i) {
    HostBudget::Answer answer = budget.Take(*store::TenantId::Parse(tenant), memory);
    if (answer.seat == nullptr) {
      EXPECT_FALSE(answer.reason.empty());
      break;
    }
    seats.push_back(std::move(answer.seat));
  }
  return seats;
}

TEST(HostBudget, OneTenantLeavesTheRestToOthers) {
  HostBudget budget;
  budget.SetLimits({20, 4000 * kMiB, 50});
  std::vector<HostBudget::Seat> hog = TakeAll(budget, "hog", kMiB);
  EXPECT_EQ(hog.size(), 10U);
  std::vector<HostBudget::Seat> other = TakeAll(budget, "other", kMiB);
  EXPECT_EQ(other.size(), 10U);
  EXPECT_EQ(TakeAll(budget, "third", kMiB).size(), 0U) << "all of the host's";
  // The control: what ends makes room for the next.
  hog.pop_back();
  EXPECT_EQ(TakeAll(budget, "third", kMiB).size(), 1U);
}

TEST(HostBudget, MemoryIsPromisedOnce) {
  HostBudget budget;
  budget.SetLimits({1000, 1000 * kMiB, 60});
  const std::vector<HostBudget::Seat> hog = TakeAll(budget, "hog", 100 * kMiB);
  EXPECT_EQ(hog.size(), 6U);
  const std::vector<HostBudget::Seat> other = TakeAll(budget, "other", 100 * kMiB);
  EXPECT_EQ(other.size(), 4U);
}

TEST(HostBudget, ALargeCallRunsAlone) {
  HostBudget budget;
  budget.SetLimits({10, 1000 * kMiB, 50});
  EXPECT_EQ(TakeAll(budget, "a", 1001 * kMiB).size(), 0U);
  const std::vector<HostBudget::Seat> one = TakeAll(budget, "a", 900 * kMiB);
  EXPECT_EQ(one.size(), 1U) << "more than its share, but its only one";
}

TEST(HostBudget, HoldsWithoutConfiguration) {
  const HostLimits limits = CompleteLimits({});
  EXPECT_GT(limits.calls, 0U);
  EXPECT_LE(limits.calls, 256U);
  EXPECT_GE(limits.memory, 512 * kMiB);
  EXPECT_EQ(limits.tenant_share, 50U);
  EXPECT_EQ(CompleteLimits({7, kMiB, 10}), (HostLimits{7, kMiB, 10}));
}

}  // namespace
}  // namespace coffer::call
