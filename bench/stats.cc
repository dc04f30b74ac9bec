// SPDX-License-Identifier: Apache-2.0
#include "stats.h"

#include <algorithm>
#include <cmath>

namespace coffer::bench {

double Quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = position - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

Summary Summarize(std::vector<double> sample) {
  if (sample.empty()) {
    return {};
  }
  std::sort(sample.begin(), sample.end());
  Summary summary;
  summary.count = sample.size();
  summary.min = sample.front();
  summary.p5 = Quantile(sample, 0.05);
  summary.p25 = Quantile(sample, 0.25);
  summary.median = Quantile(sample, 0.50);
  summary.p75 = Quantile(sample, 0.75);
  summary.p95 = Quantile(sample, 0.95);
  summary.p99 = Quantile(sample, 0.99);
  summary.max = sample.back();
  return summary;
}

double Median(std::vector<double> sample) { return Summarize(std::move(sample)).median; }

}  // namespace coffer::bench
