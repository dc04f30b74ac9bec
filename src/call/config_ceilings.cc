// SPDX-License-Identifier: Apache-2.0
#include "call/config_ceilings.h"

#include "base/quantity.h"

namespace coffer::call {
namespace {

constexpr uint64_t kHighestCeiling = 1'000'000;

}  // namespace

policy::Limits DefaultCeilings() {
  policy::Limits most;
  most.cpu = std::chrono::hours(1);
  most.wall = std::chrono::hours(1);
  most.memory = 8ULL << 30;
  most.processes = 4096;
  most.open_files = 65536;
  most.disk = 64ULL << 30;
  most.inodes = kHighestCeiling;
  most.io = 1ULL << 40;
  most.output = 64ULL << 20;
  most.tmp = 8ULL << 30;
  return most;
}

void ReadCeilings(policy::TableReader& root, policy::Limits& ceilings,
                  policy::MistakeList& mistakes) {
  const policy::TomlNode* const table = root.Table("ceilings");
  if (table == nullptr) {
    return;
  }
  policy::TableReader reader(
      *table, "ceilings",
      std::vector<std::string_view>{"cpu", "wall", "memory", "processes", "open_files", "disk",
                                    "inodes", "io", "output", "tmp"},
      mistakes);
  reader.Duration(ceilings.cpu, "cpu");
  reader.Duration(ceilings.wall, "wall");
  reader.Parsed(ceilings.memory, "memory", ParseSize);
  reader.Parsed(ceilings.disk, "disk", ParseSize);
  reader.Parsed(ceilings.io, "io", ParseSize);
  reader.Parsed(ceilings.output, "output", ParseSize);
  reader.Parsed(ceilings.tmp, "tmp", ParseSize);
  ceilings.processes = reader.Count("processes", 1, kHighestCeiling).value_or(ceilings.processes);
  ceilings.open_files =
      reader.Count("open_files", 1, kHighestCeiling).value_or(ceilings.open_files);
  ceilings.inodes = reader.Count("inodes", 1, kHighestCeiling).value_or(ceilings.inodes);
}

}  // namespace coffer::call
