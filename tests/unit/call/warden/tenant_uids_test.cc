// SPDX-License-Identifier: Apache-2.0
#include "call/warden/tenant_uids.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

uint64_t Last(const isolation::UidRange& range) { return uint64_t{range.first} + range.count - 1; }

TEST(TenantUids, NoTwoTenantsShareOne) {
  uint64_t end = Last(isolation::UidRange{});  // boundaries without a tenant
  for (uint32_t number = 1; number <= kMostTenants; ++number) {
    const auto first = UidOfTenant(number, 0);
    const auto last = UidOfTenant(number, kWardenUids - 1);
    const auto others = UidsOfTenant(number);
    ASSERT_TRUE(first.ok() && last.ok() && others.ok());
    EXPECT_GT(first->first, end) << number;
    EXPECT_EQ(first->count, 1U);
    EXPECT_GT(others->first, Last(*last));
    end = Last(*others);
  }
  // Programs that read a uid as a signed number break above.
  EXPECT_LT(end, uint64_t{1} << 31);
}

TEST(TenantUids, BeyondTheLastIsRefused) {
  EXPECT_FALSE(UidsOfTenant(kMostTenants + 1).ok());
  EXPECT_FALSE(UidOfTenant(kMostTenants + 1, 0).ok());
  EXPECT_FALSE(UidOfTenant(1, kWardenUids).ok());
  EXPECT_FALSE(UidsOfTenant(~0U).ok());
}

TEST(TenantUids, NoTenantIsTheGeneralRange) {
  EXPECT_EQ(UidsOfTenant(0)->first, isolation::UidRange{}.first);
  EXPECT_EQ(UidOfTenant(0, 5)->count, isolation::UidRange{}.count);
}

}  // namespace
}  // namespace coffer::call
