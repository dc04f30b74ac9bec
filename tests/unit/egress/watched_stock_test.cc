// SPDX-License-Identifier: Apache-2.0
#include "egress/watched_stock.h"

#include <gtest/gtest.h>

namespace coffer::egress {
namespace {

TEST(WatchedStock, CallsWithTheSameValuesShareWhatFindsThem) {
  WatchedStock stock;
  const auto first = stock.Of({{1, "first-value"}});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(stock.Of({{1, "first-value"}}), first);
  EXPECT_EQ(first->FindIn("a first-value"), 1U);
}

TEST(WatchedStock, OtherValuesHaveTheirOwn) {
  WatchedStock stock;
  const auto first = stock.Of({{1, "first-value"}});
  const auto second = stock.Of({{1, "other-value"}});
  EXPECT_EQ(second->FindIn("first-value"), 0U);
  EXPECT_EQ(second->FindIn("other-value"), 1U);
  EXPECT_EQ(first->FindIn("first-value"), 1U) << "a call that runs keeps its own";
  EXPECT_EQ(stock.Of({{2, "other-value"}})->FindIn("other-value"), 2U) << "the line counts, too";
  EXPECT_EQ(stock.Of({}), nullptr);
}

}  // namespace
}  // namespace coffer::egress
