// SPDX-License-Identifier: Apache-2.0
//
// Refusals by a rate limit, of which some are written one by one and the others are counted.
//
// A limit exists so that a flood costs little, so its refusals must cost less than what they refuse: kPerSecond of one
// tenant have receipts of their own, further ones of that second are counted by agent, tool and class, and the counts go into
// the log once the second is over. Refusals for any other reason never come here: each has a receipt, and takes
// from the rates that are refused with. What was counted in the last second is lost if the process is killed. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"

namespace coffer::call {

class RefusalFlood {
 public:
  static constexpr uint32_t kPerSecond = 20;
  static constexpr size_t kMostCounts = 1024;  // different ones; then they are counted as kOthers
  static constexpr const char* kOthers = "(others)";

  struct Counted {
    std::string tenant;
    std::string agent;
    std::string tool;
    std::string error_class;
    uint64_t count = 0;
    Nanos since{0};
    Nanos until{0};
  };

  // True: it is to be written by itself. False: it was counted.
  bool Take(const std::string& tenant, const std::string& agent, const std::string& tool,
            const std::string& error_class, Nanos now);

  // The counts of seconds that are over at `now`; they are forgotten here.
  std::vector<Counted> TakeCounts(Nanos now);
  // One that could not be written after all.
  void PutBack(const Counted& counted);
  uint64_t waiting() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  struct Second {
    int64_t second = 0;
    uint32_t written = 0;
  };
  void Add(Key key, const Counted& counted);

  std::map<std::string, Second> seconds_;  // by tenant
  std::map<Key, Counted> counts_;
};

}  // namespace coffer::call
