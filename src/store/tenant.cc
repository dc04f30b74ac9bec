// SPDX-License-Identifier: Apache-2.0
#include "store/tenant.h"

#include "store/core.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

Tenant ReadTenant(const Statement& row) {
  return {TenantIdReader::Read(row, 1), static_cast<uint32_t>(row.Int(0)), row.Time(2)};
}

Result<std::optional<Tenant>> Find(Connection& db, const TenantId& tenant) {
  TRY_ASSIGN(
      Statement query,
      db.Query("SELECT number, name, created_at FROM tenants WHERE name = ?", tenant.name()));
  TRY_ASSIGN(const bool row, query.Step());
  return row ? std::optional<Tenant>(ReadTenant(query)) : std::nullopt;
}

Result<Tenant> Insert(Connection& db, const TenantId& tenant, Nanos now) {
  TRY(db.Run("INSERT INTO tenants (name, created_at) VALUES (?, ?)", tenant.name(), now));
  TRY_ASSIGN(const int64_t number, db.Number("SELECT last_insert_rowid()"));
  return Tenant{tenant, static_cast<uint32_t>(number), now};
}

}  // namespace

Result<Tenant> EnsureTenantIn(Connection& db, const TenantId& tenant, Nanos now) {
  TRY_ASSIGN(std::optional<Tenant> found, Find(db, tenant));
  return found.has_value() ? Result<Tenant>(*found) : Insert(db, tenant, now);
}

Status CheckTenantIn(Connection& db, const TenantId& tenant) {
  TRY_ASSIGN(Statement query, db.Query("SELECT 1 FROM tenants WHERE name = ?", tenant.name()));
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return Refused("policy.tenant", "there is no tenant " + tenant.name(), "create it first");
  }
  return {};
}

Result<Tenant> EnsureTenant(Store& store, const TenantId& tenant) {
  Core& core = store.core();
  return core.Write(Durability::kOnDisk,
                    [&](Connection& db) { return EnsureTenantIn(db, tenant, core.Now()); });
}

Result<std::optional<Tenant>> FindTenant(Store& store, const TenantId& tenant) {
  return store.core().Read([&](Connection& db) { return Find(db, tenant); });
}

Result<std::vector<Tenant>> ListTenants(Store& store, AllTenants /*tag*/) {
  return store.core().Read([](Connection& db) -> Result<std::vector<Tenant>> {
    std::vector<Tenant> tenants;
    TRY_ASSIGN(Statement query,
               db.Prepare("SELECT number, name, created_at FROM tenants ORDER BY name"));
    for (;;) {
      TRY_ASSIGN(const bool row, query.Step());
      if (!row) {
        return tenants;
      }
      tenants.push_back(ReadTenant(query));
    }
  });
}

}  // namespace coffer::store
