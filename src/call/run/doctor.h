// SPDX-License-Identifier: Apache-2.0
//
// What this host can enforce, level by level and layer by layer, each with a fix if it cannot.
#pragma once

#include <string>
#include <vector>

#include "isolation/host_support.h"
#include "limits/cgroup/host.h"
#include "policy/envelope.h"

namespace coffer::call {

struct LayerFinding {
  policy::Layer layer;
  bool available = false;
  std::string why;  // if not available
  std::string fix;
};

struct LevelFinding {
  policy::Level level;
  bool reachable = false;  // a trial call ran at it
  std::string error;       // why it did not
  std::vector<LayerFinding> layers;
};

struct Diagnosis {
  isolation::HostSupport host;
  limits::CgroupHost cgroups;
  std::vector<LevelFinding> levels;  // container, then process
  bool root = false;
  // A trial run of /bin/true at the default level, and what it showed.
  bool trial_ok = false;
  std::string trial_error;
  std::vector<std::string> trial_layers;
  // Why programs that know of no proxy reach nothing with --allow; empty: they do.
  std::string not_transparent;
  std::string ipv4_only;  // why names have no IPv6 addresses then; empty: they do
};

Diagnosis Diagnose();

struct SweepSummary {
  size_t cgroups = 0;
  size_t directories = 0;
  std::vector<std::string> problems;
};
SweepSummary SweepAll();

}  // namespace coffer::call
