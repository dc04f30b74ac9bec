// SPDX-License-Identifier: Apache-2.0
//
// Tenants inside the caller's transaction. Only files of this folder include this header.
#pragma once

#include "store/sqlite.h"
#include "store/tenant.h"

namespace coffer::store {

// A TenantId from the store itself: it was checked when it went in.
struct TenantIdReader {
  static TenantId Read(const Statement& row, int column) { return TenantId(row.Text(column)); }
};

// Refused if there is no such tenant.
Status CheckTenantIn(Connection& db, const TenantId& tenant);
Result<Tenant> EnsureTenantIn(Connection& db, const TenantId& tenant, Nanos now);

}  // namespace coffer::store
