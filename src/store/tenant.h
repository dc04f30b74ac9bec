// SPDX-License-Identifier: Apache-2.0
//
// A tenant: one customer, one team, or the one person whose laptop this is.
//
// Whatever the store holds belongs to a tenant, and a TenantId is a type of its own, so that no function can be called
// without one by accident. The one exception has to be written down: AllTenants, for the operator's views. A
// TenantId comes from the caller's authentication (a key, a socket's peer), never from a request.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::store {

class Store;

class TenantId {
 public:
  // 1 to 63 of a-z, 0-9 and '-', not '-' first: it becomes part of directory names.
  static Result<TenantId> Parse(std::string_view name);
  // The tenant of a store without configuration: "local".
  static TenantId Local() { return TenantId("local"); }
  const std::string& name() const { return name_; }
  auto operator<=>(const TenantId&) const = default;

 private:
  explicit TenantId(std::string name) : name_(std::move(name)) {}
  friend struct TenantIdReader;
  std::string name_;
};

// Says in the source that a query crosses tenants. Only for operators.
struct AllTenants {};

struct Tenant {
  TenantId id = TenantId::Local();
  uint32_t number = 0;  // from 1, never used twice: ranges of uids are made from it
  Nanos created_at{0};
};

// Refused if it exists.
Result<Tenant> CreateTenant(Store& store, const TenantId& tenant);
// The one that is there, or a new one.
Result<Tenant> EnsureTenant(Store& store, const TenantId& tenant);
Result<std::optional<Tenant>> FindTenant(Store& store, const TenantId& tenant);
Result<std::vector<Tenant>> ListTenants(Store& store, AllTenants);

}  // namespace coffer::store
