// SPDX-License-Identifier: Apache-2.0
#include "watch/baseline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace coffer::watch {
namespace {

TEST(Baseline, SumsByHourAndBySample) {
  Baseline baseline;
  for (const double value : {1, 2, 3}) {
    baseline.Add(10, value);
  }
  baseline.Add(12, 6);
  baseline.Merge({.hour = 11, .samples = 0, .total = 0, .squares = 0});
  baseline.Add(9, 100);  // before the window
  EXPECT_EQ(baseline.TotalOf(10), 6);
  EXPECT_EQ(baseline.TotalOf(11), 0);
  EXPECT_EQ(baseline.TotalOf(99), 0);
  const Usual by_hour = baseline.OfHours(10, 13);
  EXPECT_EQ(by_hour.samples, 4U);
  EXPECT_EQ(by_hour.hours, 2U) << "an hour in which nobody used it says nothing";
  EXPECT_EQ(by_hour.mean, 6);
  EXPECT_EQ(by_hour.deviation, 0);
  const Usual samples = baseline.OfSamples(10, 13);
  EXPECT_EQ(samples.samples, 4U);
  EXPECT_EQ(samples.mean, 3);
  EXPECT_DOUBLE_EQ(samples.deviation, std::sqrt((4.0 + 1 + 0 + 9) / 4));
  EXPECT_EQ(baseline.OfHours(10, 12).mean, 6);
  EXPECT_EQ(baseline.OfHours(20, 30).hours, 0U);
  baseline.Forget(10);
  EXPECT_EQ(baseline.TotalOf(9), 0);
  EXPECT_EQ(baseline.TotalOf(10), 6);
}

// Values that hardly differ must not make a deviation out of rounding.
TEST(Baseline, LargeEqualValuesHaveNoDeviation) {
  Baseline baseline;
  for (int i = 0; i < 100'000; ++i) {
    baseline.Add(i % 100, 8.0e9);
  }
  const Usual usual = baseline.OfSamples(0, 100);
  EXPECT_DOUBLE_EQ(usual.mean, 8.0e9);
  EXPECT_LT(usual.deviation, 1e4);
}

TEST(Judge, YoungThingsDoNotCry) {
  const AnomalyRules rules;
  const Usual old{1000, 100, 1, 0};
  EXPECT_TRUE(Judge(Measure::kDuration, 100, old, rules).unusual) << "the control";
  EXPECT_FALSE(Judge(Measure::kDuration, 100, {49, 100, 1, 0}, rules).unusual);
  EXPECT_FALSE(Judge(Measure::kDuration, 100, {1000, 2, 1, 0}, rules).unusual);
  EXPECT_FALSE(Judge(Measure::kDuration, 100, {}, rules).unusual);
  EXPECT_TRUE(Judge(Measure::kRate, 100, {12, 12, 1, 0}, rules).unusual);
  EXPECT_FALSE(Judge(Measure::kRate, 100, {1000, 11, 1, 0}, rules).unusual);
}

TEST(Judge, DeviationsAndTheFactor) {
  AnomalyRules rules;
  const Usual wide{1000, 100, 100, 30};
  EXPECT_FALSE(Judge(Measure::kDuration, 160, wide, rules).unusual) << "exactly two";
  EXPECT_TRUE(Judge(Measure::kDuration, 160.1, wide, rules).unusual);
  rules.deviations = 3;
  EXPECT_FALSE(Judge(Measure::kDuration, 189, wide, rules).unusual);
  // Twice the rate, however much it varies otherwise; of nothing but the rate.
  const Usual wild{1000, 100, 100, 90};
  EXPECT_TRUE(Judge(Measure::kRate, 200, wild, rules).unusual);
  EXPECT_FALSE(Judge(Measure::kRate, 199, wild, rules).unusual);
  EXPECT_FALSE(Judge(Measure::kDuration, 200, wild, rules).unusual);
  EXPECT_FALSE(Judge(Measure::kRate, 9, {1000, 100, 1, 0}, rules).unusual) << "too few to matter";
  // Less than usual is nothing to tell.
  EXPECT_FALSE(Judge(Measure::kDuration, 0, wide, rules).unusual);
}

TEST(Judge, ADeviationIsNeverSmallerThanChance) {
  const AnomalyRules rules;
  EXPECT_EQ(Judge(Measure::kRate, 0, {1000, 100, 25, 0}, rules).deviation, 5);
  EXPECT_EQ(Judge(Measure::kDenials, 0, {1000, 100, 0, 0}, rules).deviation, 1);
  EXPECT_EQ(Judge(Measure::kDuration, 0, {1000, 100, 8, 0}, rules).deviation, 2);
  EXPECT_EQ(Judge(Measure::kCpu, 0, {1000, 100, 0.01, 0}, rules).deviation, 0.1);
  EXPECT_EQ(Judge(Measure::kMemory, 0, {1000, 100, 0, 0}, rules).deviation, 8 << 20);
}

TEST(Measure, NamesAndBack) {
  for (size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    EXPECT_EQ(FindMeasure(MeasureName(measure)), measure);
  }
  EXPECT_EQ(FindMeasure("rate.alert"), std::nullopt);
}

}  // namespace
}  // namespace coffer::watch
