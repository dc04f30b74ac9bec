// SPDX-License-Identifier: Apache-2.0
//
// Which host uids the boundaries of a tenant have, as root (ADR 4): a range for every tenant, made
// from its number, which the store never gives twice, so that two tenants never have had the same
// uid.
//
// Within a range the warden hands out its first part one by one, and `coffer call`, which knows no
// other call, takes one of the rest by its pid: unique wherever pid_max is 31,744 or less, else
// nearly so, and within one tenant.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "isolation/plan.h"

namespace coffer::call {

inline constexpr uint32_t kFirstTenantUid =
    0x70400000;  // above those of boundaries without a tenant
inline constexpr uint32_t kUidsPerTenant = 0x8000;
inline constexpr uint32_t kMostTenants = (0x80000000 - kFirstTenantUid) / kUidsPerTenant;
inline constexpr uint32_t kWardenUids = 1024;

// For a boundary of no daemon. 0 is no tenant; a number beyond the last range is refused.
Result<isolation::UidRange> UidsOfTenant(uint32_t number);
// For the warden: the one uid with that index, which must be below kWardenUids.
Result<isolation::UidRange> UidOfTenant(uint32_t number, uint32_t index);

}  // namespace coffer::call
