// SPDX-License-Identifier: Apache-2.0
//
// A baseline: what one measure of one tool usually is, from hourly sums of the last days. Pure values, no I/O.
//
// Two kinds of measures. Counts (calls, denials) are compared hour by hour: the sum of this hour against the sums of
// the hours before in which the tool was used at all; hours without a call are left out. Sizes (duration, CPU,
// memory, output) are compared call by call: this call against all calls of the window.
//
// A deviation is never taken for smaller than chance makes it: counts vary by their square root, and whatever varies
// less than a little is measured no better than that. So a perfectly even load does not make the first wobble an alert.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace coffer::watch {

enum class Measure : uint8_t { kRate, kDuration, kDenials, kCpu, kMemory, kOutput };
inline constexpr size_t kMeasures = 6;
std::string_view MeasureName(Measure measure);  // "rate"
std::optional<Measure> FindMeasure(std::string_view name);
// Compared by the hour.
constexpr bool IsCount(Measure measure) {
  return measure == Measure::kRate || measure == Measure::kDenials;
}

// Of one hour: how many samples, their sum, the sum of their squares.
struct Bucket {
  int64_t hour = 0;  // since 1970
  uint64_t samples = 0;
  double total = 0;
  double squares = 0;

  void Add(double value) {
    ++samples;
    total += value;
    squares += value * value;
  }
};

struct Usual {
  uint64_t samples = 0;
  size_t hours = 0;  // in which there were any
  double mean = 0;
  double deviation = 0;  // as it was, before any floor
};

class Baseline {
 public:
  // Adds to the hour. Hours come in any order.
  void Merge(const Bucket& bucket);
  void Add(int64_t hour, double value);
  void Forget(int64_t before);

  double TotalOf(int64_t hour) const;
  // Of the hours' totals, those of [from, to).
  Usual OfHours(int64_t from, int64_t to) const;
  // Of the single samples in the hours [from, to).
  Usual OfSamples(int64_t from, int64_t to) const;

 private:
  struct Sums {
    uint64_t samples = 0;
    size_t hours = 0;
    double total = 0;
    double squares = 0;            // of the single samples
    double squares_of_totals = 0;  // of the hours
  };
  Sums SumOf(int64_t from, int64_t to) const;

  std::vector<Bucket> buckets_;  // by hour
};

struct AnomalyRules {
  Nanos window = std::chrono::hours(24 * 7);
  double deviations = 2;
  double rate_factor = 2;  // of the mean; for the rate of calls only
  // With less than this behind it, a tool is young and nothing about it is unusual.
  size_t least_hours = 12;      // in which it was used, for counts; a quarter of them for sizes
  uint64_t least_samples = 50;  // for sizes
};

// Whether `value` is more than usual, and by which deviation that was judged.
struct Judgement {
  bool unusual = false;
  double mean = 0;
  double deviation = 0;
};
Judgement Judge(Measure measure, double value, const Usual& usual, const AnomalyRules& rules);

}  // namespace coffer::watch
