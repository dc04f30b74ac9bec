// SPDX-License-Identifier: Apache-2.0
#include "store/stored_bytes.h"

#include <algorithm>

#include "store/call_row.h"
#include "store/core.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

constexpr size_t kMostAtOnce = 200;  // calls in one transaction

Result<OldBodies> Collect(Statement& query, uint64_t bytes) {
  OldBodies old;
  while (old.bytes < bytes && old.calls.size() < kMostAtOnce) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      break;
    }
    old.calls.push_back(query.Text(0));
    old.bytes += query.Count(1);
    old.through = std::max(old.through, query.Time(2));
  }
  return old;
}

}  // namespace

Result<uint64_t> StoredBytesIn(Connection& db, const TenantId& tenant) {
  TRY_ASSIGN(Statement query, db.Query("SELECT bytes FROM stored WHERE tenant = ?", tenant.name()));
  TRY_ASSIGN(const bool row, query.Step());
  return row ? query.Count(0) : uint64_t{0};
}

Result<uint64_t> StoredBytes(Store& store, const TenantId& tenant) {
  return store.core().Read([&](Connection& db) { return StoredBytesIn(db, tenant); });
}

// The length of a body is found by reading it, so the query must not look at more of them than it
// returns: it goes from call to call, beginning with the first that has a body, and sorts and
// groups nothing.
Result<OldBodies> FindOldResults(Store& store, const TenantId& tenant, uint64_t bytes) {
  return store.core().Read([&](Connection& db) -> Result<OldBodies> {
    TRY_ASSIGN(
        Statement query,
        db.Query("SELECT c.id, "
                 "coalesce((SELECT length(CAST(body AS BLOB)) FROM results r "
                 "WHERE r.tenant = ?1 AND r.call_id = c.id), 0) + "
                 "coalesce((SELECT length(CAST(body AS BLOB)) FROM transcripts t "
                 "WHERE t.tenant = ?1 AND t.call_id = c.id), 0) + "
                 "(SELECT coalesce(sum(length(body)), 0) FROM call_files f "
                 "WHERE f.tenant = ?1 AND f.call_id = c.id), c.finished_at "
                 "FROM calls c WHERE c.tenant = ?1 AND c.finished_at IS NOT NULL AND c.id >= ("
                 "SELECT coalesce(min(first), '~') FROM ("
                 "SELECT min(call_id) AS first FROM results WHERE tenant = ?1 UNION ALL "
                 "SELECT min(call_id) FROM transcripts WHERE tenant = ?1 UNION ALL "
                 "SELECT min(call_id) FROM call_files WHERE tenant = ?1)) AND ("
                 "EXISTS (SELECT 1 FROM results WHERE tenant = ?1 AND call_id = c.id) OR "
                 "EXISTS (SELECT 1 FROM transcripts WHERE tenant = ?1 AND call_id = c.id) OR "
                 "EXISTS (SELECT 1 FROM call_files WHERE tenant = ?1 AND call_id = c.id)) "
                 "ORDER BY c.id",
                 tenant.name()));
    return Collect(query, bytes);
  });
}

Result<OldBodies> FindOldCalls(Store& store, const TenantId& tenant, uint64_t bytes) {
  return store.core().Read([&](Connection& db) -> Result<OldBodies> {
    TRY_ASSIGN(
        Statement query,
        db.Query("SELECT c.id, (SELECT coalesce(sum(length(CAST(d.body AS BLOB))), 0) FROM "
                 "documents d WHERE d.tenant = c.tenant AND d.call_id = c.id), c.finished_at "
                 "FROM calls c WHERE c.tenant = ? AND c.finished_at IS NOT NULL AND c.cleanup = 0 "
                 "AND c.log_index IS NOT NULL ORDER BY c.id",
                 tenant.name()));
    return Collect(query, bytes);
  });
}

Status RemoveResults(Store& store, const TenantId& tenant, const OldBodies& old) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Status {
    for (const std::string& id : old.calls) {
      TRY(db.Run("DELETE FROM results WHERE tenant = ? AND call_id = ?", tenant.name(), id));
      TRY(db.Run("DELETE FROM transcripts WHERE tenant = ? AND call_id = ?", tenant.name(), id));
      TRY(RemoveCallFiles(db, tenant, id));
    }
    return {};
  });
}

Status RemoveCalls(Store& store, const TenantId& tenant, const OldBodies& old) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Status {
    for (const std::string& id : old.calls) {
      TRY(ReleaseKey(db, tenant, id));
      TRY(RemoveCallFiles(db, tenant, id));
      for (const char* sql : {"DELETE FROM results WHERE tenant = ? AND call_id = ?",
                              "DELETE FROM transcripts WHERE tenant = ? AND call_id = ?",
                              "DELETE FROM documents WHERE tenant = ? AND call_id = ?",
                              "DELETE FROM calls WHERE tenant = ? AND id = ?"}) {
        TRY(db.Run(sql, tenant.name(), id));
      }
    }
    return ForgetUnusedObjects(db, tenant);
  });
}

}  // namespace coffer::store
