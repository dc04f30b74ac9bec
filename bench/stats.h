// SPDX-License-Identifier: Apache-2.0
//
// Order statistics of a sample. Means hide what a user notices, so nothing here computes one over latencies.
#pragma once

#include <cstddef>
#include <vector>

namespace coffer::bench {

struct Summary {
  size_t count = 0;
  double min = 0, p5 = 0, p25 = 0, median = 0, p75 = 0, p95 = 0, p99 = 0, max = 0;
};

// The value below which `share` (0 to 1) of the sample lies, interpolated. `sorted` must be sorted and not empty.
double Quantile(const std::vector<double>& sorted, double share);

Summary Summarize(std::vector<double> sample);
double Median(std::vector<double> sample);

}  // namespace coffer::bench
