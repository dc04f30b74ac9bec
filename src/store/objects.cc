// SPDX-License-Identifier: Apache-2.0
#include "store/objects.h"

#include "base/hash.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

Result<std::optional<std::string>> ReadBody(Statement& query, std::string_view hash) {
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return std::optional<std::string>();
  }
  std::string body = query.Text(0);
  if (HashOf(body) != hash) {
    return Internal("record.broken", "what the store has under this hash has another one");
  }
  return std::optional<std::string>(std::move(body));
}

}  // namespace

Status KeepObject(const Core& core, Connection& db, const TenantId& tenant, std::string_view hash,
                  std::string_view body) {
  if (body.empty()) {
    return {};
  }
  // Once an hour is often enough to tell which are used, and most calls write nothing here.
  return db.Run(
      "INSERT INTO objects (tenant, hash, body, seen_at) VALUES (?, ?, ?, ?) "
      "ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at "
      "WHERE seen_at < excluded.seen_at - 3600000000000",
      tenant.name(), hash, body, core.Now());
}

Status ForgetUnusedObjects(Connection& db, const TenantId& tenant) {
  return db.Run(
      "DELETE FROM objects WHERE tenant = ?1 AND seen_at + 3600000000000 < coalesce((SELECT "
      "requested_at FROM calls WHERE tenant = ?1 ORDER BY id LIMIT 1), seen_at)",
      tenant.name());
}

Result<std::optional<std::string>> FindObject(Store& store, const TenantId& tenant,
                                              std::string_view hash) {
  return store.core().Read([&](Connection& db) -> Result<std::optional<std::string>> {
    TRY_ASSIGN(Statement query, db.Query("SELECT body FROM objects WHERE tenant = ? AND hash = ?",
                                         tenant.name(), hash));
    return ReadBody(query, hash);
  });
}

Result<std::optional<std::string>> FindObject(Store& store, AllTenants /*tag*/,
                                              std::string_view hash) {
  return store.core().Read([&](Connection& db) -> Result<std::optional<std::string>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT body FROM objects WHERE tenant IN (SELECT name FROM tenants) "
                        "AND hash = ? LIMIT 1",
                        hash));
    return ReadBody(query, hash);
  });
}

}  // namespace coffer::store
