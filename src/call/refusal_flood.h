// SPDX-License-Identifier: Apache-2.0
//
// Refusals by a limit (rates, budgets, retries), of which some have a receipt of their own and the others share one.
//
// A limit exists so that a flood costs little, so its refusals must cost less than what they refuse. Of one tenant and
// second kPerSecond have receipts of their own. Beyond that, one receipt per agent, tool and class, at most kMostShared
// of them. All further refusals share one more receipt. How many refusals a receipt stands for goes into the log once
// the second is over. So every refusal has a receipt, and a tenant causes at most kPerSecond + kMostShared + 1 of them
// a second, beside those that are being written at that moment. Refusals for any other reason never come here. Not
// thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "audit/log/log.h"
#include "base/clock.h"
#include "store/tenant_id.h"

namespace coffer::call {

class RefusalFlood {
 public:
  static constexpr uint32_t kPerSecond = 20;
  static constexpr uint32_t kMostShared = 20;
  static constexpr const char* kOthers = "(others)";

  // What the refusals under one receipt have in common.
  struct Whose {
    store::TenantId tenant;
    std::string agent;
    std::string tool;
    std::string error_class;
    auto operator<=>(const Whose&) const = default;
  };
  struct Shared {
    std::string call_id;
    std::string receipt;  // sealed
    audit::LogPosition log;
  };
  struct Counted {
    Whose whose;
    std::string call_id;  // of the receipt
    uint64_t count = 0;   // beside the call for which it was written
    Nanos since{0};
    Nanos until{0};
  };

  struct Answer {
    std::optional<Shared> shared;     // this is its receipt; it was counted
    std::optional<Whose> stands_for;  // write one for all of these, and Share it
  };  // neither: write one
  Answer Take(const Whose& whose, Nanos now);
  // `now`: when it was taken. Of two that were written at the same time the first is shared.
  void Share(const Whose& whose, Shared shared, Nanos now);

  // The counts of seconds that are over at `now`; they are forgotten here.
  std::vector<Counted> TakeCounts(Nanos now);
  uint64_t waiting() const;

 private:
  struct Group {
    int64_t second = 0;
    Shared shared;
    Counted counted;
  };
  struct Second {
    int64_t second = 0;
    uint32_t written = 0;
    uint32_t shared = 0;
  };
  void Retire(const Group& group);

  std::map<store::TenantId, Second> seconds_;
  std::map<Whose, Group> groups_;
  std::vector<Counted> over_;
};

}  // namespace coffer::call
