// SPDX-License-Identifier: Apache-2.0
//
// All calls together, and a tenant's share of them.
#include "call/host_budget.h"

#include <gtest/gtest.h>

#include <vector>

#include "limits/cgroup/surrounding.h"
#include "tests/support/temp_dir.h"

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
  EXPECT_EQ(other.size(), 5U) << "half of what the first leaves";
  const std::vector<HostBudget::Seat> third = TakeAll(budget, "third", kMiB);
  EXPECT_EQ(third.size(), 2U);
  // What ends makes room for those who have less than their share of the rest.
  hog.resize(2);
  EXPECT_EQ(TakeAll(budget, "third", kMiB).size(), 4U);
}

// However many tenants take all that they can, others find a place until the last eighth is full, by one place each.
TEST(HostBudget, ManyTenantsLeaveSomethingForTheNext) {
  HostBudget budget;
  budget.SetLimits({256, 4000 * kMiB, 50});
  std::vector<std::vector<HostBudget::Seat>> taken;
  size_t all = 0;
  size_t alone = 0;
  for (int i = 0; i < 200; ++i) {
    taken.push_back(TakeAll(budget, "tenant" + std::to_string(i), kMiB));
    all += taken.back().size();
    alone += taken.back().size() == 1 ? 1 : 0;
    if (taken.back().empty()) {
      break;
    }
    EXPECT_TRUE(taken.back().size() == 1 || 256 - all >= 32) << i;
  }
  EXPECT_EQ(all, 256U);
  EXPECT_GE(alone, 32U) << "the last eighth is for as many tenants";
  EXPECT_EQ(taken.front().size(), 128U);
  // The same for memory: tenants whose calls may use much leave an eighth, too.
  HostBudget small;
  small.SetLimits({1000, 3200 * kMiB, 50});
  std::vector<std::vector<HostBudget::Seat>> held;
  for (const size_t places : {16, 8, 4, 1, 1, 1, 1, 0}) {
    held.push_back(TakeAll(small, "tenant" + std::to_string(held.size()), 100 * kMiB));
    EXPECT_EQ(held.back().size(), places) << held.size();
  }
}

TEST(HostBudget, ATenantMayHaveAllIfTheOperatorSaysSo) {
  HostBudget budget;
  budget.SetLimits({20, 4000 * kMiB, 100});
  EXPECT_EQ(TakeAll(budget, "only", kMiB).size(), 20U);
}

TEST(HostBudget, MemoryIsPromisedOnce) {
  HostBudget budget;
  budget.SetLimits({1000, 1000 * kMiB, 60});
  const std::vector<HostBudget::Seat> hog = TakeAll(budget, "hog", 100 * kMiB);
  EXPECT_EQ(hog.size(), 6U);
  const std::vector<HostBudget::Seat> other = TakeAll(budget, "other", 100 * kMiB);
  EXPECT_EQ(other.size(), 2U) << "60 percent of the 400 that the first leaves";
}

TEST(HostBudget, ALargeCallRunsAlone) {
  HostBudget budget;
  budget.SetLimits({10, 1000 * kMiB, 50});
  EXPECT_EQ(TakeAll(budget, "a", 1001 * kMiB).size(), 0U);
  const std::vector<HostBudget::Seat> one = TakeAll(budget, "a", 900 * kMiB);
  EXPECT_EQ(one.size(), 1U) << "more than its share, but its only one";
}

TEST(HostBudget, HoldsWithoutConfiguration) {
  const HostLimits limits = CompleteLimits({}, std::nullopt);
  EXPECT_GT(limits.calls, 0U);
  EXPECT_LE(limits.calls, 256U);
  EXPECT_GE(limits.memory, 512 * kMiB);
  EXPECT_EQ(limits.tenant_share, 50U);
  EXPECT_EQ(CompleteLimits({7, kMiB, 10}, 600 * kMiB), (HostLimits{7, kMiB, 10}));
}

// A unit with `MemoryMax=` on a host without a cgroup namespace: the root of what is mounted says nothing.
TEST(HostBudget, PromisesNoMoreThanTheDaemonsOwnCgroupHas) {
  const test::TempDir root;
  const std::string unit = "/sys/fs/cgroup/system.slice/coffer.service";
  root.Write(unit.substr(1) + "/memory.max", "838860800\n");
  const std::string mounts =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  const auto memory = [&](const char* own) {
    return CompleteLimits({}, limits::SurroundingMemoryOf(own, mounts, root.path())).memory;
  };
  EXPECT_EQ(memory("0::/system.slice/coffer.service\n"), 600 * kMiB);
  EXPECT_EQ(memory("0::/system.slice\n"), CompleteLimits({}, std::nullopt).memory)
      << "the control: in a cgroup without a limit it is the host's";
}

}  // namespace
}  // namespace coffer::call
