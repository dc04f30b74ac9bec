// SPDX-License-Identifier: Apache-2.0
//
// TenantId: the one form of a tenant inside the program.
//
// It is a type of its own, so that no function that needs a tenant can be called without one by
// accident. The one exception has to be written down: AllTenants, for the operator's views. A
// TenantId comes from the channel that authenticated the caller (a key, a socket's peer), never
// from a request. Text stands for a tenant only where bytes come in or go out.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::store {

class TenantId {
 public:
  // 1 to 63 of a-z, 0-9 and '-', not '-' first: it becomes part of directory names.
  static Result<TenantId> Parse(std::string_view name);
  // The tenant of a store without configuration: "local".
  static TenantId Local() { return TenantId("local"); }
  // No store has such a tenant, so everything that is asked under it is refused: a client that is not known yet.
  static TenantId None() { return TenantId(""); }
  const std::string& name() const { return name_; }
  auto operator<=>(const TenantId&) const = default;

 private:
  explicit TenantId(std::string name) : name_(std::move(name)) {}
  friend struct TenantIdReader;
  std::string name_;
};

// Says in the source that a query crosses tenants. Only for operators.
struct AllTenants {};

}  // namespace coffer::store
