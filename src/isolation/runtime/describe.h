// SPDX-License-Identifier: Apache-2.0
//
// What `coffer runtimes` tells: which runtimes this host has, from which program, and how much they make visible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isolation/runtime/runtime.h"

namespace coffer::isolation {

struct RuntimeReport {
  std::string name;
  std::string summary;
  bool found = false;
  std::string program;            // the real file: "/usr/bin/python3.11"; empty for host-usr
  std::string package;            // what would bring it
  std::string problem;            // why it cannot be used
  size_t entries = 0;             // mounts: files and trees
  std::optional<uint64_t> files;  // in all mounts; empty where counting takes too long (host-usr)
  std::optional<uint64_t> bytes;
};

std::vector<RuntimeReport> DescribeRuntimes(const ResolveOptions& options = {});

}  // namespace coffer::isolation
