// SPDX-License-Identifier: Apache-2.0
#include "policy/rate.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace coffer::policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Rate, ReadsAndWritesWhatPeopleWrite) {
  for (const char* text : {"1/s", "10/s", "100/m", "1000/h", "1000000/d"}) {
    const Result<RateRule> rule = ParseRate(text);
    ASSERT_TRUE(rule.ok()) << text;
    EXPECT_EQ(FormatRate(*rule), text);
  }
  for (const char* text : {"", "10", "/s", "10/", "10/x", "0/s", "-1/s", "1000001/s", "10 /s",
                           "10/ s", "1.5/s", "99999999999999999999/s", "10/s "}) {
    EXPECT_FALSE(ParseRate(text).ok()) << text;
  }
}

TEST(Rate, AWindowSlides) {
  SlidingWindow window({3, seconds(60)});
  Nanos now = seconds(1000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(window.WaitAt(now), Nanos(0));
    window.Take(now);
    now += seconds(10);
  }
  EXPECT_EQ(window.UsedAt(now), 3U);
  const Nanos wait = window.WaitAt(now);  // the first was 30 s ago
  EXPECT_GE(wait, seconds(30));
  EXPECT_LE(wait, seconds(31));
  EXPECT_GT(window.WaitAt(now + wait - Nanos(1)), Nanos(0));
  EXPECT_EQ(window.WaitAt(now + wait), Nanos(0));
  EXPECT_EQ(window.UsedAt(now + seconds(3600)), 0U);
}

TEST(Rate, NoWindowEverHoldsMoreThanTheLimit) {
  std::mt19937_64 random(7);
  for (const RateRule rule :
       {RateRule{5, seconds(1)}, RateRule{20, seconds(60)}, RateRule{7, seconds(3600)}}) {
    SlidingWindow window(rule);
    std::deque<Nanos> admitted;
    Nanos now = seconds(50000);
    size_t total = 0;
    for (int i = 0; i < 20000; ++i) {
      now +=
          Nanos(static_cast<int64_t>(random() % static_cast<uint64_t>(rule.window.count() / 200)));
      const Nanos wait = window.WaitAt(now);
      EXPECT_LE(wait, rule.window + rule.window / 50);
      if (wait > Nanos(0)) {
        continue;
      }
      window.Take(now);
      ++total;
      admitted.push_back(now);
      while (now - admitted.front() >= rule.window) {
        admitted.pop_front();
      }
      ASSERT_LE(admitted.size(), rule.count);
    }
    // And it is not simply closed: close to the limit in every window.
    const double windows = static_cast<double>((now - seconds(50000)).count()) /
                           static_cast<double>(rule.window.count());
    EXPECT_GT(static_cast<double>(total), 0.9 * windows * static_cast<double>(rule.count));
  }
}

TEST(Rate, AClockThatGoesBackwardsStandsStill) {
  SlidingWindow window({1, seconds(1)});
  window.Take(seconds(100));
  EXPECT_GT(window.WaitAt(seconds(10)), Nanos(0));
  window.Take(seconds(10));
  EXPECT_EQ(window.UsedAt(seconds(100)), 2U);
}

TEST(Rate, AGateNamesWhatHolds) {
  RateGate gate({{{10, seconds(60)}, {100, seconds(3600)}}, 2, 3});
  const Nanos now = seconds(777);
  EXPECT_TRUE(gate.Peek(now).allowed);
  gate.Take(now);
  gate.Take(now);
  RateVerdict verdict = gate.Peek(now);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.reason, "burst of 2");
  EXPECT_GE(verdict.retry_after, seconds(1));
  EXPECT_LE(verdict.retry_after, milliseconds(1100));

  gate.Take(now + seconds(2));
  verdict = gate.Peek(now + seconds(4));
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.reason, "3 at a time");
  EXPECT_EQ(verdict.retry_after, Nanos(0));
  gate.Release();
  EXPECT_TRUE(gate.Peek(now + seconds(4)).allowed);
  EXPECT_EQ(gate.running(), 2U);

  for (int i = 0; i < 7; ++i) {
    gate.Take(now + seconds(4 + 2 * i));
    gate.Release();
  }
  verdict = gate.Peek(now + seconds(20));
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.reason, "10/m");
  gate.Release();
  gate.Release();
  gate.Release();
  EXPECT_EQ(gate.running(), 0U);  // once more than taken changes nothing
}

TEST(Rate, NoLimitsAdmitEverything) {
  RateGate gate({});
  for (int i = 0; i < 1000; ++i) {
    gate.Take(seconds(1));
  }
  EXPECT_TRUE(gate.Peek(seconds(1)).allowed);
}

}  // namespace
}  // namespace coffer::policy
