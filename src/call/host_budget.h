// SPDX-License-Identifier: Apache-2.0
//
// Bounds the number, memory and processors of all boundaries of this host together, and of each tenant's.
//
// A call counts with the memory that its envelope allows, not with what it uses, and as one of so many per processor,
// from before it is admitted until its record is written. So the sum of what was promised never passes what the host has, and
// a tenant that takes all that it can leaves the rest to others. Without configuration: three quarters of the
// host's memory (of the daemon's own cgroup, where that has less), 64 calls for each processor but at most 256, and of both one
// half for a tenant. That is a half of what the others leave: the second tenant that takes all it can gets a quarter, and no number of
// tenants takes the last eighth but with one call each, which is never refused for a share. It shares out places, not cycles: within them the kernel's scheduler decides. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/tenant_id.h"

namespace coffer::call {

struct HostLimits {
  uint64_t calls = 0;          // 0: as above
  uint64_t memory = 0;         // bytes; 0: as above
  uint64_t tenant_share = 50;  // of each, in percent
  bool operator==(const HostLimits&) const = default;
};

// What this host has, with every 0 replaced.
HostLimits CompleteLimits(HostLimits limits);

// How much memory the relay of a call with [calls] may use, in the daemon. The relay starts before
// the boundary has a cgroup, so the boundary's cap does not hold it. It bounds itself
// (cli/verb_inside_relay.h), and that bound counts here together with its call's memory.
inline constexpr uint64_t kRelayMemory = uint64_t{128} << 20;

class HostBudget {
 public:
  // Held for as long as a call takes part; gives back when the last copy is gone. Outlives the budget safely.
  using Seat = std::shared_ptr<const void>;

  // Complete limits. What is taken already stays taken.
  void SetLimits(const HostLimits& limits);

  struct Answer {
    Seat seat;           // null: refused
    std::string reason;  // then: for the agent
  };
  Answer Take(const store::TenantId& tenant, uint64_t memory);

 private:
  struct Use {
    uint64_t calls = 0;
    uint64_t memory = 0;
  };
  struct State {
    std::mutex mutex;
    HostLimits limits;
    Use all;
    std::map<store::TenantId, Use> tenants;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace coffer::call
