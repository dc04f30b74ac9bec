// SPDX-License-Identifier: Apache-2.0
//
// Bounds the number, memory and processors of all boundaries of this host together, and of each tenant's.
//
// A call counts as one call and with the memory that its envelope allows, not with what it uses,
// from before it is admitted until its record is written. So the promised memory never exceeds the
// host's, and no tenant can take all of it. The defaults are three quarters of the host's memory (of
// what the cgroups around the daemon leave it, where that is less) but at least 512 MiB, and 64 calls
// for each processor, at most 256.
// A tenant may have half of what other tenants do not use, so a second tenant at its limit has a
// quarter. The last eighth is for tenants that run no call: the first call of a tenant is never
// refused for its share. The budget shares out places. The kernel shares out CPU time, between the
// cgroups of tenants (limits/cgroup/tenant_level.h) where the host has a place for them.
// Thread-safe.
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

// What this host has, with every 0 replaced. `surrounding` is the tightest memory limit around the
// daemon, if there is one (limits/cgroup/surrounding.h).
HostLimits CompleteLimits(HostLimits limits, std::optional<uint64_t> surrounding);

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
