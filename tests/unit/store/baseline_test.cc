// SPDX-License-Identifier: Apache-2.0
#include "store/baseline.h"

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

using BaselineStore = StoreTest;

TEST_F(BaselineStore, AddsUpReadsBackAndForgets) {
  const BaselineHour one{"bash", "duration", 100, 2, 3.5, 6.25};
  const BaselineHour next{"bash", "duration", 101, 1, 1e9, 1e18};
  Must(AddBaselines(store(), a_, std::vector{one, next}));
  Must(AddBaselines(store(), a_, std::vector{one}));
  Must(AddBaselines(store(), a_, {}));
  Reopen();
  const std::vector<BaselineHour> kept = Must(ReadBaselines(store(), a_, "bash", 0));
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].measure, "duration");
  EXPECT_EQ(kept[0].hour, 100);
  EXPECT_EQ(kept[0].samples, 4U);
  EXPECT_EQ(kept[0].total, 7.0);
  EXPECT_EQ(kept[0].squares, 12.5);
  EXPECT_EQ(kept[1].total, 1e9);
  EXPECT_EQ(kept[1].squares, 1e18);
  EXPECT_EQ(Must(ReadBaselines(store(), a_, "bash", 101)).size(), 1U);
  EXPECT_EQ(Must(PruneBaselines(store(), AllTenants{}, 101)), 1);
  EXPECT_EQ(Must(ReadBaselines(store(), a_, "bash", 0)).size(), 1U);
}

TEST_F(BaselineStore, OfOneTenantAndOneTool) {
  Must(AddBaselines(store(), a_, std::vector{BaselineHour{"bash", "rate", 1, 1, 1, 1}}));
  Must(AddBaselines(store(), b_, std::vector{BaselineHour{"bash", "rate", 1, 5, 5, 5}}));
  EXPECT_EQ(Must(ReadBaselines(store(), a_, "bash", 0))[0].samples, 1U);
  EXPECT_EQ(Must(ReadBaselines(store(), b_, "bash", 0))[0].samples, 5U);
  EXPECT_TRUE(Must(ReadBaselines(store(), a_, "python", 0)).empty());
}

}  // namespace
}  // namespace coffer::store
