// SPDX-License-Identifier: Apache-2.0
//
// A tenant: one customer, one team, or the one person whose laptop this is.
//
// Everything that the store holds belongs to a tenant; tenant_id.h has the type that names one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/tenant_id.h"

namespace coffer::store {

class Store;

struct Tenant {
  TenantId id = TenantId::Local();
  uint32_t number = 0;  // from 1, never used twice: ranges of uids are made from it
  Nanos created_at{0};
};

// The one that is there, or a new one.
Result<Tenant> EnsureTenant(Store& store, const TenantId& tenant);
Result<std::optional<Tenant>> FindTenant(Store& store, const TenantId& tenant);
Result<std::vector<Tenant>> ListTenants(Store& store, AllTenants);

}  // namespace coffer::store
