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
    return Internal("record.broken", "the stored object does not match its hash");
  }
  return std::optional<std::string>(std::move(body));
}

// The latest call of each manifest and envelope that is not there. When a call started is sealed in
// its receipt; when it was decided is not.
constexpr const char* kNamedAndGone =
    "SELECT tenant, hash, id, max(at) FROM (SELECT tenant, id, manifest_hash AS hash, "
    "coalesce(started_at, decided_at) AS at FROM calls NOT INDEXED UNION ALL SELECT tenant, id, "
    "envelope_id, coalesce(started_at, decided_at) FROM calls NOT INDEXED) AS named WHERE hash <> "
    "'' "
    "AND at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.tenant = named.tenant AND "
    "o.hash = named.hash) GROUP BY tenant, hash ORDER BY max(at) DESC LIMIT ?";

Status FindGone(Connection& db, uint32_t most, std::vector<ObjectFault>& faults) {
  TRY_ASSIGN(Statement query, db.Query(kNamedAndGone, int64_t{most}));
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return {};
    }
    faults.push_back({query.Text(0), query.Text(1), query.Text(2), Nanos(query.Int(3))});
  }
}

Status FindChanged(Connection& db, uint32_t most, std::vector<ObjectFault>& faults) {
  TRY_ASSIGN(Statement query, db.Query("SELECT tenant, hash, body FROM objects"));
  for (uint32_t found = 0; found < most;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      break;
    }
    if (std::string hash = query.Text(1); HashOf(query.Text(2)) != hash) {
      faults.push_back({query.Text(0), std::move(hash), "", Nanos(0)});
      ++found;
    }
  }
  return {};
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

Result<std::vector<ObjectFault>> FindObjectFaults(Store& store, AllTenants /*tag*/, uint32_t most) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<ObjectFault>> {
    std::vector<ObjectFault> faults;
    TRY(FindGone(db, most, faults));
    TRY(FindChanged(db, most, faults));
    return faults;
  });
}

}  // namespace coffer::store
