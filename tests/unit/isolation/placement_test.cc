// SPDX-License-Identifier: Apache-2.0
#include "isolation/placement.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace coffer::isolation {
namespace {

std::vector<int> ProcessorsOf(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (::sched_getaffinity(process, sizeof(set), &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) {
        processors.push_back(i);
      }
    }
  }
  return processors;
}

bool Use(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int i : processors) {
    CPU_SET(i, &set);
  }
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

// A child that sleeps, with the processors that the test has at that moment; and the test's own are put back.
class PlacementTest : public testing::Test {
 protected:
  void StartChild() {
    child_ = ::fork();
    if (child_ == 0) {
      for (;;) {
        ::pause();
      }
    }
    ASSERT_GT(child_, 0);
  }
  void TearDown() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    EXPECT_TRUE(Use(all_));
  }

  const std::vector<int> all_ = ProcessorsOf(0);
  pid_t child_ = -1;
};

TEST_F(PlacementTest, OfTwoProcessorsItGetsTheOtherOneAndThenBothBack) {
  if (all_.size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  const std::vector<int> two = {all_[0], all_[1]};
  ASSERT_TRUE(Use(two));
  StartChild();
  Placement placement;
  placement.SendAway(child_);
  ASSERT_TRUE(placement.narrowed());
  const std::vector<int> there = ProcessorsOf(child_);
  ASSERT_EQ(there.size(), 1U);
  EXPECT_TRUE(there[0] == two[0] || there[0] == two[1]);
  const Status restored = placement.Restore(child_);
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(ProcessorsOf(child_), two);
  EXPECT_FALSE(placement.narrowed());
  EXPECT_EQ(ProcessorsOf(0), two) << "ours are not touched";
}

TEST_F(PlacementTest, WhatIsClonedStaysWithUsUntilItGetsBothBack) {
  if (all_.size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  const std::vector<int> two = {all_[0], all_[1]};
  ASSERT_TRUE(Use(two));
  Placement placement;
  const int other = placement.Gather();
  const std::vector<int> here = ProcessorsOf(0);
  ASSERT_EQ(here.size(), 1U);
  EXPECT_NE(here[0], other);
  EXPECT_TRUE(other == two[0] || other == two[1]);
  StartChild();
  placement.Release();
  EXPECT_EQ(ProcessorsOf(0), two);
  EXPECT_EQ(ProcessorsOf(child_), here);
  EXPECT_TRUE(placement.narrowed());
  ASSERT_TRUE(placement.Restore(child_).ok());
  EXPECT_EQ(ProcessorsOf(child_), two);
}

TEST_F(PlacementTest, MovesOneProcess) {
  StartChild();
  EXPECT_TRUE(MoveTo(child_, all_.back()));
  EXPECT_EQ(ProcessorsOf(child_), std::vector<int>{all_.back()});
  EXPECT_EQ(ProcessorsOf(0), all_) << "ours are not touched";
}

TEST_F(PlacementTest, WithOneProcessorNothingHappens) {
  ASSERT_TRUE(Use({all_[0]}));
  Placement placement;
  EXPECT_EQ(placement.Gather(), -1);
  StartChild();
  placement.Release();
  placement.SendAway(child_);
  EXPECT_FALSE(placement.narrowed());
  EXPECT_TRUE(placement.Restore(child_).ok());
  EXPECT_EQ(ProcessorsOf(child_), std::vector<int>{all_[0]});
}

TEST_F(PlacementTest, WhatIsGoneCannotBeSentAway) {
  StartChild();
  const pid_t gone = child_;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = -1;
  Placement placement;
  placement.SendAway(gone);
  EXPECT_FALSE(placement.narrowed());
}

TEST_F(PlacementTest, ProcessorsThatCannotBeGivenBackAreAnError) {
  if (all_.size() < 2) {
    GTEST_SKIP() << "one processor";
  }
  ASSERT_TRUE(Use({all_[0], all_[1]}));
  StartChild();
  Placement placement;
  placement.SendAway(child_);
  ASSERT_TRUE(placement.narrowed());
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  const Status restored = placement.Restore(child_);
  child_ = -1;
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().sys_errno, ESRCH);
}

}  // namespace
}  // namespace coffer::isolation
