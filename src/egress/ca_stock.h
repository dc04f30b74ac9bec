// SPDX-License-Identifier: Apache-2.0
//
// Certificate authorities that are made ahead of the calls they are for: making one takes about a millisecond.
//
// One spare is kept for each kind of rules that was asked for lately. Each is handed out once, so
// two boundaries never share one, and lives in this process's memory alone. A spare that has stood
// for kMostAge is dropped, so that its certificate lasts for the whole call.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "egress/boundary_ca.h"

namespace coffer::egress {

class CaStock {
 public:
  static constexpr size_t kMostKinds = 16;
  static constexpr Nanos kMostAge = std::chrono::minutes(30);

  // The one that was made ahead for such rules, or a new one.
  Result<std::unique_ptr<BoundaryCa>> Take(const std::vector<policy::EgressRule>& rules, Nanos now);
  // Makes one that is missing, at a moment when no call waits. False if none is.
  bool Refill(Nanos now);

 private:
  struct Kind {
    std::string constraints;
    std::unique_ptr<BoundaryCa> spare;  // null: to be made
    Nanos made{0};
  };
  std::list<Kind> kinds_;  // the one that was asked for last is the first
};

}  // namespace coffer::egress
