// SPDX-License-Identifier: Apache-2.0
//
// A Tool turns a payload into the command line that runs it confined, as strictly as that tool allows without a
// profile of one's own. Each is tried once before anything is measured: a peer that cannot run here is left out
// and the report says why; coffer that cannot run ends the run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command.h"
#include "results.h"

namespace coffer::bench {

inline constexpr int kMaxWorkers = 8;

struct Payload {
  std::string key;    // "true"
  std::string title;  // "/bin/true"
  std::vector<std::string> argv;
};

struct Tool {
  ToolInfo info;
  // `slot` tells concurrent callers apart, 0 to kMaxWorkers - 1.
  std::function<Command(const Payload&, int slot)> make;
};

struct Toolbox {
  std::vector<Tool> tools;
  std::vector<std::string> left_out;  // "crun: <why>"
};

// The payloads everything is measured with, and the one that stays alive while memory is read.
std::vector<Payload> MeasuredPayloads();
Payload SleepingPayload();

// Finds and tries every tool. `coffer` is the path of the program, or empty to measure only the peers; `floor` that of
// bench_floor, which is left out where it does not exist; `scratch` is a directory for bundles. Payloads must be known
// now because some tools keep them in files.
Toolbox FindTools(const std::string& coffer, const std::string& floor, const std::string& scratch,
                  const std::vector<Payload>& payloads);

}  // namespace coffer::bench
