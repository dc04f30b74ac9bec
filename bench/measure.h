// SPDX-License-Identifier: Apache-2.0
//
// The measurements proper. Tools take turns in an order shuffled anew each round, so that whatever disturbs the
// machine disturbs all of them alike; nothing is pinned, because a user's calls are not.
#pragma once

#include <string>
#include <vector>

#include "results.h"
#include "tool.h"

namespace coffer::bench {

// `rounds` calls per tool. With `gap_ms` above 0 the machine rests that long before every call, as it does in real
// use: some kernel paths (moving a process between cgroups, for one) are fast only in a tight loop.
std::vector<Series> MeasureLatency(const std::vector<Tool>& tools, const Payload& payload,
                                   int rounds, double gap_ms);

// Calls per second of `workers` processes that each start the next call when the last has ended. Every tool gets
// `slices` slices of `slice_seconds`, in turns.
std::vector<Throughput> MeasureThroughput(const std::vector<Tool>& tools, const Payload& payload,
                                          int workers, int slices, double slice_seconds);

// Proportional set size of all processes of a tool beside the payload, while the payload sleeps.
std::vector<Memory> MeasureMemory(const std::vector<Tool>& tools, int repetitions);

}  // namespace coffer::bench
