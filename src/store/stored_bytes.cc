// SPDX-License-Identifier: Apache-2.0
#include "store/stored_bytes.h"

#include <algorithm>

#include "store/call_file_row.h"
#include "store/call_row.h"
#include "store/core.h"
#include "store/object_row.h"
#include "store/stored_bytes_row.h"

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

Result<OldBodies> FindOldResults(Store& store, const TenantId& tenant, uint64_t bytes) {
  return store.core().Read([&](Connection& db) -> Result<OldBodies> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT b.call_id, sum(b.bytes), c.finished_at FROM ("
                        "SELECT call_id, length(CAST(body AS BLOB)) AS bytes FROM results "
                        "WHERE tenant = ?1 UNION ALL "
                        "SELECT call_id, length(CAST(body AS BLOB)) FROM transcripts "
                        "WHERE tenant = ?1 UNION ALL "
                        "SELECT call_id, length(body) FROM call_files "
                        "WHERE tenant = ?1) b JOIN calls c ON c.tenant = ?1 AND c.id = b.call_id "
                        "WHERE c.finished_at IS NOT NULL GROUP BY b.call_id ORDER BY b.call_id",
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
