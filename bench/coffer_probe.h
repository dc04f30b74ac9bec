// SPDX-License-Identifier: Apache-2.0
//
// What only coffer can tell: which layers its boundary really had, where the time of a call went, and what the
// system call filter costs. All of it comes from receipts and from a probe that runs inside.
#pragma once

#include <string>
#include <vector>

#include "results.h"

namespace coffer::bench {

struct LayerCheck {
  std::vector<std::string> active;
  std::vector<std::string>
      absent;  // known layers that were not active: with one of these nothing is published
};
LayerCheck CheckLayers(const std::string& coffer);

// Medians over `calls` calls, from the receipts; empty if they name no steps.
Steps MeasureSteps(const std::string& coffer, int calls);

// One getppid, a million times, outside and inside in turns. `probe` is the path of bench_probe.
FilterCost MeasureFilter(const std::string& coffer, const std::string& probe, int repetitions);

}  // namespace coffer::bench
