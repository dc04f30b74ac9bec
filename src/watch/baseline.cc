// SPDX-License-Identifier: Apache-2.0
#include "watch/baseline.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace coffer::watch {
namespace {

constexpr std::string_view kNames[] = {"rate", "duration", "denials", "cpu", "memory", "output"};
static_assert(std::size(kNames) == kMeasures);

struct Floor {
  double share;   // of the mean: a deviation below it is noise
  double least;   // in the measure's own unit, likewise
  double fewest;  // a value below it is never an alert
};

// Seconds and bytes. A call that takes a tenth of a second longer, or eight MiB more, is not reported.
Floor FloorOf(Measure measure) {
  switch (measure) {
    case Measure::kRate:
      return {0.1, 1, 10};
    case Measure::kDenials:
      return {0.1, 1, 5};
    case Measure::kDuration:
    case Measure::kCpu:
      return {0.25, 0.1, 0};
    case Measure::kMemory:
      return {0.25, 8.0 * 1024 * 1024, 0};
    case Measure::kOutput:
      return {0.25, 16.0 * 1024, 0};
  }
  return {1, 0, 0};
}

Usual Summarise(uint64_t samples, size_t hours, double count, double total, double squares) {
  Usual usual;
  usual.samples = samples;
  usual.hours = hours;
  if (count > 0) {
    usual.mean = total / count;
    usual.deviation = std::sqrt(std::max(0.0, squares / count - usual.mean * usual.mean));
  }
  return usual;
}

}  // namespace

std::string_view MeasureName(Measure measure) { return kNames[static_cast<size_t>(measure)]; }

std::optional<Measure> FindMeasure(std::string_view name) {
  for (size_t i = 0; i < kMeasures; ++i) {
    if (kNames[i] == name) {
      return static_cast<Measure>(i);
    }
  }
  return std::nullopt;
}

void Baseline::Merge(const Bucket& bucket) {
  const auto at = std::lower_bound(buckets_.begin(), buckets_.end(), bucket.hour,
                                   [](const Bucket& b, int64_t hour) { return b.hour < hour; });
  if (at == buckets_.end() || at->hour != bucket.hour) {
    buckets_.insert(at, bucket);
    return;
  }
  at->samples += bucket.samples;
  at->total += bucket.total;
  at->squares += bucket.squares;
}

void Baseline::Add(int64_t hour, double value) {
  Bucket one{.hour = hour};
  one.Add(value);
  Merge(one);
}

void Baseline::Forget(int64_t before) {
  std::erase_if(buckets_, [before](const Bucket& bucket) { return bucket.hour < before; });
}

double Baseline::TotalOf(int64_t hour) const {
  const auto at = std::find_if(buckets_.begin(), buckets_.end(),
                               [hour](const Bucket& bucket) { return bucket.hour == hour; });
  return at == buckets_.end() ? 0 : at->total;
}

Baseline::Sums Baseline::SumOf(int64_t from, int64_t to) const {
  Sums sums;
  for (const Bucket& bucket : buckets_) {
    if (bucket.hour >= from && bucket.hour < to && bucket.samples > 0) {
      sums.samples += bucket.samples;
      ++sums.hours;
      sums.total += bucket.total;
      sums.squares += bucket.squares;
      sums.squares_of_totals += bucket.total * bucket.total;
    }
  }
  return sums;
}

Usual Baseline::OfHours(int64_t from, int64_t to) const {
  const Sums sums = SumOf(from, to);
  return Summarise(sums.samples, sums.hours, static_cast<double>(sums.hours), sums.total,
                   sums.squares_of_totals);
}

Usual Baseline::OfSamples(int64_t from, int64_t to) const {
  const Sums sums = SumOf(from, to);
  return Summarise(sums.samples, sums.hours, static_cast<double>(sums.samples), sums.total,
                   sums.squares);
}

Judgement Judge(Measure measure, double value, const Usual& usual, const AnomalyRules& rules) {
  const Floor floor = FloorOf(measure);
  Judgement judged;
  judged.mean = usual.mean;
  judged.deviation = std::max({usual.deviation, floor.share * usual.mean, floor.least,
                               IsCount(measure) ? std::sqrt(usual.mean) : 0.0});
  const bool young =
      IsCount(measure) ? usual.hours < rules.least_hours
                       : usual.hours < rules.least_hours / 4 || usual.samples < rules.least_samples;
  if (young || value < floor.fewest) {
    return judged;
  }
  judged.unusual =
      value > usual.mean + rules.deviations * judged.deviation ||
      (measure == Measure::kRate && usual.mean > 0 && value >= rules.rate_factor * usual.mean);
  return judged;
}

}  // namespace coffer::watch
