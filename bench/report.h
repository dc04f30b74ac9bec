// SPDX-License-Identifier: Apache-2.0
//
// docs/BENCHMARKS.md: what was promised, what was found, and how to find out again. Ratios come first, because
// absolute times hold only on the machine that produced them.
#pragma once

#include <string>
#include <vector>

#include "results.h"

namespace coffer::bench {

// `plots` are the file names that exist in docs/bench/.
std::string WriteReport(const Results& results, const std::vector<std::string>& left_out,
                        const std::vector<std::string>& plots);

// The same in a few lines, for a terminal.
std::string WriteSummary(const Results& results);

}  // namespace coffer::bench
