// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "measure.h"

namespace coffer::bench {

std::vector<Series> MeasureLatency(const std::vector<Tool>& tools, const Payload& payload,
                                   int rounds, double gap_ms) {
  std::vector<Series> all;
  std::vector<Command> commands;
  std::vector<size_t> order;
  for (const Tool& tool : tools) {
    order.push_back(order.size());
    commands.push_back(tool.make(payload, 0));
    all.push_back({tool.info.name, payload.key, gap_ms > 0, {}});
    all.back().micros.reserve(static_cast<size_t>(rounds));
  }
  for (const Command& command : commands) {  // page cache and dentries are warm for everybody
    for (int i = 0; i < 3; ++i) {
      RunTimed(command);
    }
  }
  std::mt19937 shuffle(20);  // NOLINT: the same order every time is wanted
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), shuffle);
    for (const size_t index : order) {
      if (gap_ms > 0) {
        SleepMicros(gap_ms * 1e3);
      }
      all[index].micros.push_back(RunTimed(commands[index]));
    }
  }
  return all;
}

}  // namespace coffer::bench
