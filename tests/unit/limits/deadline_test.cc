// SPDX-License-Identifier: Apache-2.0
#include "limits/deadline.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace coffer::limits {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Deadline, BecomesReadableWhenItIsSpentAndNotBefore) {
  const Result<Deadline> far = Deadline::Start(seconds(1000));
  ASSERT_TRUE(far.ok());
  pollfd waiting{far->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  EXPECT_FALSE(far->Spent());
  EXPECT_GT(far->at() - BootTime(), seconds(900));

  const Result<Deadline> near = Deadline::Start(milliseconds(20));
  ASSERT_TRUE(near.ok());
  waiting.fd = near->fd();
  EXPECT_EQ(::poll(&waiting, 1, 10000), 1);
  EXPECT_TRUE(near->Spent());
  EXPECT_GE(near->elapsed(), milliseconds(20));
  EXPECT_LE(near->at(), BootTime());
}

TEST(Deadline, MustLieInTheFuture) {
  EXPECT_FALSE(Deadline::Start(Nanos(0)).ok());
  EXPECT_FALSE(Deadline::Start(seconds(-1)).ok());
}

TEST(NextCpuCheck, IsWhenAllCpusTogetherCouldHaveSpentTheRest) {
  EXPECT_EQ(NextCpuCheck(milliseconds(0), milliseconds(100), 1), milliseconds(100));
  EXPECT_EQ(NextCpuCheck(milliseconds(0), milliseconds(100), 4), milliseconds(25));
  EXPECT_EQ(NextCpuCheck(milliseconds(60), milliseconds(100), 2), milliseconds(20));
}

TEST(NextCpuCheck, StaysWithinItsBounds) {
  EXPECT_EQ(NextCpuCheck(seconds(0), seconds(10), 2), kLongestCheck);
  EXPECT_EQ(NextCpuCheck(milliseconds(99), milliseconds(100), 2), kShortestCheck);
  EXPECT_EQ(NextCpuCheck(seconds(11), seconds(10), 2), kShortestCheck);
  EXPECT_EQ(NextCpuCheck(milliseconds(0), milliseconds(100), 0), milliseconds(100));
}

TEST(NextCpuCheck, BoundsTheOvershootOfATreeThatSpins) {
  constexpr unsigned kCpus = 8;
  const Nanos cap = seconds(3);
  Nanos used{0};
  while (used < cap) {
    used += NextCpuCheck(used, cap, kCpus) * kCpus;
  }
  EXPECT_LE(used - cap, kShortestCheck * kCpus);
}

TEST(UsableCpus, IsWhatWeMayRunOn) { EXPECT_GE(UsableCpus(), 1U); }

}  // namespace
}  // namespace coffer::limits
