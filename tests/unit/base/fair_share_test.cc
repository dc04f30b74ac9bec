// SPDX-License-Identifier: Apache-2.0
#include "base/fair_share.h"

#include <gtest/gtest.h>

namespace coffer {
namespace {

// How much a taker gets, one by one, beside others that have `others`.
uint64_t TakeAll(const FairShare& share, uint64_t others) {
  uint64_t own = 0;
  while (share.Leaves(own + 1, others + own + 1)) {
    ++own;
  }
  return own;
}

TEST(FairShare, EachTakesItsPartOfWhatOthersLeave) {
  const FairShare half{64, 50, 1};
  EXPECT_EQ(TakeAll(half, 0), 32U);
  EXPECT_EQ(TakeAll(half, 32), 16U);
  EXPECT_EQ(TakeAll(half, 48), 8U);
  EXPECT_EQ(TakeAll(FairShare{64, 75, 1}, 0), 48U);
}

TEST(FairShare, TheLastPartIsForThoseThatHaveNothing) {
  const FairShare half{64, 50, 1};
  EXPECT_EQ(TakeAll(half, 55), 1U);
  EXPECT_EQ(TakeAll(half, 56), 0U);
  EXPECT_EQ(TakeAll(half, 64), 0U);
  EXPECT_EQ(TakeAll(half, 100), 0U) << "more than there is";
  // Where things are counted, the last part is one of them at least.
  EXPECT_EQ(TakeAll(FairShare{4, 75, 1}, 0), 3U);
  EXPECT_EQ(TakeAll(FairShare{4, 75, 1}, 3), 0U);
}

// The control: with all of it as the share nothing is kept back.
TEST(FairShare, AWholeShareIsAllThereIs) {
  EXPECT_EQ(TakeAll(FairShare{64, 100, 1}, 0), 64U);
  EXPECT_EQ(TakeAll(FairShare{64, 100, 1}, 60), 4U);
}

TEST(FairShare, LargeNumbersDoNotRunOver) {
  EXPECT_EQ(FairShare::PartOf(UINT64_MAX, 50), UINT64_MAX / 2);
  EXPECT_TRUE((FairShare{UINT64_MAX, 50, 0}.Leaves(UINT64_MAX / 2, UINT64_MAX / 2)));
}

}  // namespace
}  // namespace coffer
