// SPDX-License-Identifier: Apache-2.0
//
// Days of calls, with a clock that only the test moves.
#include "watch/anomaly.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "tests/unit/store/store_fixture.h"

namespace coffer::watch {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class AnomalyTest : public store::StoreTest {
 protected:
  AnomalyTest() { Begin(); }

  void Begin(AnomalyRules rules = {}) {
    anomalies_ = std::make_unique<Anomalies>(
        store(), rules, [this](const Alert& alert) { raised_.push_back(alert); });
  }
  // The process ends and another begins; what was flushed is there.
  void Restart() {
    anomalies_.reset();
    Reopen();
    Begin();
  }
  CallMeasures Now() {
    CallMeasures call;
    call.at = store().Now();
    return call;
  }
  void Call(const CallMeasures& call, const char* tool = "bash") {
    store::Must(anomalies_->Observe(a_, tool, call));
  }
  // Evenly spaced calls, each like `like`.
  void Load(Nanos time, double per_hour, CallMeasures like = {}, const char* tool = "bash") {
    const auto gap = Nanos(static_cast<int64_t>(3600e9 / per_hour));
    for (Nanos spent{0}; spent < time; spent += gap) {
      Pass(gap);
      like.at = store().Now();
      Call(like, tool);
    }
    store::Must(anomalies_->Flush());
  }
  std::vector<std::string> Raised() const {
    std::vector<std::string> names;
    for (const Alert& alert : raised_) {
      names.push_back(alert.tool + " " + alert.measure);
    }
    return names;
  }
  using Names = std::vector<std::string>;

  static CallMeasures Usually() {
    CallMeasures call;
    call.duration = seconds(1);
    call.cpu = milliseconds(300);
    call.memory = 64U << 20;
    call.output = 1000;
    return call;
  }

  std::vector<Alert> raised_;
  std::unique_ptr<Anomalies> anomalies_;
};

// Whatever the rate, and wherever in the hour it begins.
TEST_F(AnomalyTest, AConstantLoadNeverAlerts) {
  int round = 0;
  for (const double per_hour : {0.3, 1.0, 1.7, 7.0, 59.9, 240.5}) {
    Pass(minutes(17));
    Load(hours(24 * 9), per_hour, Usually(), ("tool-" + std::to_string(round++)).c_str());
  }
  EXPECT_EQ(Raised(), Names{});
}

TEST_F(AnomalyTest, ADoubledRateDoes) {
  for (const double per_hour : {6.0, 60.0}) {
    raised_.clear();
    const std::string tool = "tool-" + std::to_string(static_cast<int>(per_hour));
    Load(hours(48), per_hour, Usually(), tool.c_str());
    ASSERT_EQ(Raised(), Names{});
    Load(hours(2), per_hour * 2, Usually(), tool.c_str());
    ASSERT_FALSE(raised_.empty());
    EXPECT_LE(raised_.size(), 3U) << "one in an hour";
    EXPECT_EQ(raised_[0].measure, "rate");
    EXPECT_EQ(raised_[0].tenant, a_);
    EXPECT_NEAR(raised_[0].mean, per_hour, per_hour / 10);
    EXPECT_GT(raised_[0].value, per_hour * 1.2);
    EXPECT_NE(raised_[0].words.find(tool + " was called "), std::string::npos) << raised_[0].words;
  }
}

TEST_F(AnomalyTest, OneOutlierDoesOnceAnHour) {
  Load(hours(24), 60, Usually());
  ASSERT_EQ(Raised(), Names{});
  CallMeasures slow = Usually();
  slow.at = store().Now();
  slow.duration = seconds(9);
  Call(slow);
  EXPECT_EQ(Raised(), Names{"bash duration"});
  EXPECT_EQ(raised_[0].value, 9);
  EXPECT_EQ(raised_[0].mean, 1);
  Call(slow);
  EXPECT_EQ(raised_.size(), 1U) << "at most one in an hour";
  CallMeasures big = Usually();
  big.at = store().Now();
  big.cpu = seconds(3);
  big.memory = 512U << 20;
  big.output = 1 << 20;
  Call(big);
  EXPECT_EQ(Raised(), (Names{"bash duration", "bash cpu", "bash memory", "bash output"}));
  raised_.clear();
  Pass(hours(1));
  slow.at = store().Now();
  Call(slow);
  EXPECT_EQ(Raised(), Names{"bash duration"});
}

TEST_F(AnomalyTest, ManyDenialsDoWhereverTheyComeFrom) {
  Load(hours(24), 20, Usually());
  CallMeasures one = Usually();
  one.denials = 1;
  one.at = store().Now();
  Call(one);
  EXPECT_EQ(Raised(), Names{}) << "one denial is nothing";
  for (int i = 0; i < 5; ++i) {
    Call(one);
  }
  EXPECT_EQ(Raised(), Names{"bash denials"});
  raised_.clear();
  Pass(hours(1));
  one.at = store().Now();
  one.denials = 50;
  Call(one);
  EXPECT_EQ(Raised(), Names{"bash denials"});
}

TEST_F(AnomalyTest, ASlowDriftDoesNot) {
  // Slower and slower, to three times what it was, within a week; a little uneven as the world is.
  std::mt19937 random(7);
  std::uniform_real_distribution<double> wobble(0.97, 1.03);
  for (int i = 0; i < 24 * 7 * 6; ++i) {
    Pass(minutes(10));
    CallMeasures call = Usually();
    const double grown = 1 + 2.0 * i / (24 * 7 * 6);
    call.duration = Nanos(static_cast<int64_t>(1e9 * grown * wobble(random)));
    call.at = store().Now();
    Call(call);
  }
  EXPECT_EQ(Raised(), Names{});
  // The control: the same height, all at once.
  CallMeasures call = Usually();
  call.duration = seconds(6);
  call.at = store().Now();
  Call(call);
  EXPECT_EQ(Raised(), Names{"bash duration"});
}

TEST_F(AnomalyTest, AYoungToolDoesNotCry) {
  Load(hours(1), 40, Usually());
  CallMeasures slow = Usually();
  slow.duration = seconds(100);
  slow.at = store().Now();
  Call(slow);
  Load(hours(1), 400, Usually());
  EXPECT_EQ(Raised(), Names{});
}

TEST_F(AnomalyTest, NobodysLoadCountsForAnybodyElse) {
  Load(hours(24), 20, Usually());
  // Another tenant does the unusual, in the same hour with the same tool, and is itself young.
  for (int i = 0; i < 1000; ++i) {
    CallMeasures wild = Usually();
    wild.at = store().Now();
    wild.duration = seconds(1000);
    wild.denials = 10;
    store::Must(anomalies_->Observe(b_, "bash", wild));
  }
  EXPECT_EQ(Raised(), Names{});
  // And its slowness is not our usual.
  CallMeasures slow = Usually();
  slow.at = store().Now();
  slow.duration = seconds(9);
  Call(slow);
  EXPECT_EQ(Raised(), Names{"bash duration"});
  EXPECT_EQ(raised_[0].tenant, a_);
}

TEST_F(AnomalyTest, ARestartForgetsNothing) {
  Load(hours(24), 20, Usually());
  Restart();
  CallMeasures slow = Usually();
  slow.at = store().Now();
  slow.duration = seconds(9);
  Call(slow);
  EXPECT_EQ(Raised(), Names{"bash duration"});
  EXPECT_EQ(raised_[0].mean, 1);
  store::Must(anomalies_->Flush());
  Restart();
  Call(slow);
  EXPECT_EQ(raised_.size(), 1U) << "this hour's alert was raised before the restart";
  Pass(hours(1));
  slow.at = store().Now();
  slow.duration = seconds(20);
  Call(slow);
  EXPECT_EQ(raised_.size(), 2U) << "the control";
}

// The same as if it had never been interrupted, and never counted twice.
TEST_F(AnomalyTest, FlushingChangesNothing) {
  for (int i = 0; i < 100; ++i) {
    Pass(minutes(30));
    CallMeasures call = Usually();
    call.at = store().Now();
    Call(call);
    store::Must(anomalies_->Flush());
    store::Must(anomalies_->Flush());
  }
  const auto kept = store::Must(store::ReadBaselines(store(), a_, "bash", 0));
  uint64_t calls = 0;
  for (const store::BaselineHour& hour : kept) {
    calls += hour.measure == "rate" ? hour.samples : 0;
  }
  EXPECT_EQ(calls, 100U);
  EXPECT_TRUE(store::Must(store::ReadBaselines(store(), b_, "bash", 0)).empty());
}

TEST_F(AnomalyTest, WhatIsOlderThanTheWindowIsForgotten) {
  Load(hours(24), 20, Usually());
  Pass(hours(24 * 8));
  CallMeasures slow = Usually();
  slow.at = store().Now();
  slow.duration = seconds(9);
  Call(slow);
  EXPECT_EQ(Raised(), Names{}) << "it is as if the tool were new";
  store::Must(anomalies_->Flush());
  for (const store::BaselineHour& hour :
       store::Must(store::ReadBaselines(store(), a_, "bash", 0))) {
    EXPECT_GE(Nanos(hours(hour.hour)), store().Now() - hours(24 * 7 + 1));
  }
}

TEST_F(AnomalyTest, AShortWindowStillWorks) {
  AnomalyRules rules;
  rules.window = hours(8);
  Begin(rules);
  Load(hours(7), 60, Usually());
  EXPECT_EQ(Raised(), Names{});
  Load(hours(1), 200, Usually());
  ASSERT_FALSE(raised_.empty());
  EXPECT_EQ(raised_[0].measure, "rate");
}

TEST_F(AnomalyTest, ThreadsLoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 500;
  const CallMeasures call = [this] {
    CallMeasures now = Usually();
    now.at = store().Now();
    return now;
  }();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &call] {
      for (int i = 0; i < kRounds; ++i) {
        store::Must(anomalies_->Observe(t % 2 == 0 ? a_ : b_, "bash", call));
        if (i % 50 == 0) {
          store::Must(anomalies_->Flush());
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  store::Must(anomalies_->Flush());
  for (const store::TenantId& tenant : {a_, b_}) {
    uint64_t calls = 0;
    for (const store::BaselineHour& hour :
         store::Must(store::ReadBaselines(store(), tenant, "bash", 0))) {
      calls += hour.measure == "duration" ? hour.samples : 0;
    }
    EXPECT_EQ(calls, static_cast<uint64_t>(kThreads / 2 * kRounds));
  }
}

TEST_F(AnomalyTest, AClockThatGoesBackDoesNoHarm) {
  Load(hours(24), 20, Usually());
  Pass(hours(24 * 365));
  Call(Now());
  Pass(-hours(24 * 365));
  CallMeasures slow = Usually();
  slow.at = store().Now();
  slow.duration = seconds(9);
  Restart();
  Call(slow);
  EXPECT_EQ(Raised(), Names{"bash duration"});
}

}  // namespace
}  // namespace coffer::watch
