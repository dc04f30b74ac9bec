// SPDX-License-Identifier: Apache-2.0
//
// The pictures of the report, each a function from Results to the text of one SVG file. An empty string means that
// this run has nothing to show.
#pragma once

#include <string>

#include "results.h"

namespace coffer::bench {

// Every tool twice, tight and spaced: samples as dots, the middle half as a box, median, 5th to 95th percentile as a
// line, 99th percentile as a ring; logarithmic axis in milliseconds.
std::string PlotLatency(const Results& results, const std::string& payload,
                        const std::string& title);

// Where the time of one coffer call goes: one stacked bar and its legend, in microseconds.
std::string PlotSteps(const Results& results);

// Calls per second by tool and number of workers.
std::string PlotThroughput(const Results& results);

}  // namespace coffer::bench
