// SPDX-License-Identifier: Apache-2.0
//
// Runs a command in a root that holds exactly one runtime set, /proc, /dev/null and an empty /tmp: if something is missing
// from the set, the command fails. For tests of completeness; it confines nothing.
#pragma once

#include <string>
#include <vector>

#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

struct InsideResult {
  bool supported = false;  // namespaces and mounts are allowed here
  int status = -1;         // exit code, 128 + signal
  std::string output;      // stdout and stderr
};

InsideResult RunInside(const RuntimeSet& set, const std::string& program, const std::vector<std::string>& argv);

}  // namespace coffer::isolation
