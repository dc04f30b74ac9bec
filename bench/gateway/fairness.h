// SPDX-License-Identifier: Apache-2.0
//
// What one tenant notices of another: the victim asks at a fixed rate, half of what it gets alone, and the hostile tenant
// does its worst meanwhile, one kind of trouble after the other. Beside it /healthz is asked 50 times a second.
//
// The clients of the hostile tenant have the lowest priority (SCHED_IDLE): they stand for clients on other machines, and what
// counts is what the daemon does for them. Processes that burn CPU or sync the disk have the usual one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/gateway/process.h"

namespace coffer::bench {

struct FairnessTarget {
  uint16_t port = 0;
  std::string victim_key, hostile_key;
  std::string directory;  // a place on the daemon's disk
  pid_t gateway = 0;
};

struct FairnessRow {
  std::string what;
  int rate = 0;  // of the victim's calls, a second
  double p50_ms = 0, p99_ms = 0;
  double ratio = 1;  // of p99 to that alone
  double health_p50_ms = 0, health_p99_ms = 0;
  uint64_t attacks = 0;  // requests of the hostile tenant that were sent meanwhile
  long memory_kib = 0;   // the most the gateway had until then
};

// `calls` makes that many calls of the victim, at `rate` a second (0: as fast as it goes), and returns their latencies in ns.
using VictimCalls = std::function<std::vector<double>(int count, int rate)>;

// The first row is the victim alone.
std::vector<FairnessRow> MeasureFairness(const FairnessTarget& target, const VictimCalls& calls,
                                         int samples);

std::string FairnessTable(const std::vector<FairnessRow>& rows);

}  // namespace coffer::bench
