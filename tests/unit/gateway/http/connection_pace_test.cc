// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/connection_pace.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

namespace coffer::gateway {
namespace {

using Verdict = ConnectionPace::Verdict;

class ConnectionPaceTest : public ::testing::Test {
 protected:
  // The descriptor tells newcomers apart.
  Verdict Come(const std::string& peer) {
    Newcomer newcomer{UniqueFd(::eventfd(0, EFD_CLOEXEC)), false};
    return pace_.Take(peer, &newcomer, now_);
  }
  size_t Due() {
    return pace_.Due(now_, [](const Newcomer&) { return false; }).size();
  }
  void Wait(std::chrono::milliseconds time) { now_ += time; }

  ConnectionPace::Time now_{};
  ConnectionPace pace_{{.per_second = 10, .burst = 3, .held = 4, .peers = 2}};
};

TEST_F(ConnectionPaceTest, ABurstComesAtOnceAndTheRestInTurn) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Come("one"), Verdict::kNow);
  }
  EXPECT_EQ(Come("one"), Verdict::kHeld);
  EXPECT_EQ(Come("one"), Verdict::kHeld);
  EXPECT_EQ(Due(), 0U);
  EXPECT_EQ(Come("two"), Verdict::kNow) << "another peer does not wait";
  Wait(std::chrono::milliseconds(100));
  EXPECT_EQ(Come("one"), Verdict::kHeld) << "the oldest comes first";
  EXPECT_EQ(Due(), 1U);
  Wait(std::chrono::milliseconds(1000));
  EXPECT_EQ(Due(), 2U);
  EXPECT_FALSE(pace_.holds_any());
  EXPECT_EQ(Come("one"), Verdict::kNow) << "the control: it is at rest again";
}

TEST_F(ConnectionPaceTest, APeerHoldsNoMoreThanItsPlaces) {
  for (int i = 0; i < 3 + 4; ++i) {
    EXPECT_NE(Come("one"), Verdict::kTooMany);
  }
  EXPECT_EQ(Come("one"), Verdict::kTooMany);
  EXPECT_EQ(Come("two"), Verdict::kNow);
}

TEST_F(ConnectionPaceTest, ThoseWhoLeaveUseUpNothing) {
  for (int i = 0; i < 3 + 4; ++i) {
    (void)Come("one");
  }
  Wait(std::chrono::milliseconds(100));
  int asked = 0;
  // All but the last have left.
  const auto due = pace_.Due(now_, [&](const Newcomer&) { return ++asked < 4; });
  EXPECT_EQ(due.size(), 1U);
  EXPECT_FALSE(pace_.holds_any());
}

TEST_F(ConnectionPaceTest, PeersAtRestAreForgotten) {
  EXPECT_EQ(Come("one"), Verdict::kNow);
  EXPECT_EQ(Come("two"), Verdict::kNow);
  Wait(std::chrono::seconds(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Come("three"), Verdict::kNow);
  }
  EXPECT_EQ(Come("three"), Verdict::kHeld) << "there was a place to remember it";
}

TEST_F(ConnectionPaceTest, AClockThatStandsStillGivesNothing) {
  for (int i = 0; i < 4; ++i) {
    (void)Come("one");
  }
  Wait(std::chrono::milliseconds(-500));
  EXPECT_EQ(Due(), 0U);
  EXPECT_TRUE(pace_.holds_any());
}

}  // namespace
}  // namespace coffer::gateway
