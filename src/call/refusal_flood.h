// SPDX-License-Identifier: Apache-2.0
//
// Bounds how many records the refusals of one tenant make. Every refusal has a receipt, of its own or a shared one.
//
// A limit exists so that a flood costs little, so refusals by a limit (rates, budgets, retries) must cost less than what
// they refuse. Of one tenant and second kPerSecond have receipts of their own. Beyond that, one receipt per agent, tool
// and class, at most kMostShared of them. All further refusals share one more receipt. How many refusals a receipt
// stands for goes into the log once the second is over.
//
// The log is never pruned, so over longer times each tenant has an Allowance of records, for refusals of every kind. Once
// it is spent, one receipt stands for all refusals of the tenant until two records are allowed again: the next receipt
// and its count. The ladder then answers every refusal as one by a limit (WaitFor), so all of them come to Take. Beyond
// the allowance a tenant makes only records that were being written at that moment. Not thread-safe.
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

  // A tenant may make so many records at once, and one more each time that `each` has passed. A record takes some 700
  // bytes of the log: 1.4 MB at once and 12 MB a day.
  struct Allowance {
    uint64_t records = 2000;
    Nanos each = std::chrono::seconds(5);
  };

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

  RefusalFlood() = default;
  explicit RefusalFlood(Allowance allowance) : allowance_(allowance) {}

  // How long until the tenant's refusals may have receipts of their own again; 0: they may now.
  Nanos WaitFor(const store::TenantId& tenant, Nanos now) const;
  // Takes records from the allowance for refusals that do not come to Take.
  void Charge(const store::TenantId& tenant, Nanos now, uint64_t records = 1);

  struct Answer {
    std::optional<Shared> shared;     // this is its receipt; it was counted
    std::optional<Whose> stands_for;  // write one for all of these, and Share it
  };  // neither: write one
  Answer Take(const Whose& whose, Nanos now);
  // `now`: when it was taken. Of two that were written at the same time the first is shared.
  void Share(const Whose& whose, Shared shared, Nanos now);

  // The counts of receipts that are shared no more at `now`; they are forgotten here.
  std::vector<Counted> TakeCounts(Nanos now);
  uint64_t waiting() const;

 private:
  struct Group {
    Nanos over{0};  // from then on it is shared no more
    Shared shared;
    Counted counted;
  };
  struct Second {
    int64_t second = 0;
    uint32_t written = 0;
    uint32_t shared = 0;
  };
  static Whose AllOf(const store::TenantId& tenant) { return {tenant, kOthers, kOthers, kOthers}; }
  std::optional<Shared> FindShared(const Whose& whose, Nanos now);
  Answer TakeSpent(const Whose& all, Nanos now);
  void Retire(const Group& group);

  Allowance allowance_;
  // When the records that each tenant has made are paid for, at one for each `each`.
  std::map<store::TenantId, Nanos> paid_;
  std::map<store::TenantId, Second> seconds_;
  std::map<Whose, Group> groups_;
  std::vector<Counted> over_;
};

}  // namespace coffer::call
