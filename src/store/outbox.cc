// SPDX-License-Identifier: Apache-2.0
#include "store/outbox.h"

#include <algorithm>

#include "store/core.h"
#include "store/rows.h"

namespace coffer::store {

Status PutInOutbox(Connection& db, Nanos now, std::span<const std::string> receivers,
                   std::string_view tenant, std::string_view body) {
  for (const std::string& receiver : receivers) {
    TRY(
        db.Run("INSERT INTO outbox (target, tenant, body, created_at, next_at) "
               "VALUES (?1, ?2, ?3, ?4, ?4)",
               receiver, tenant, body, now));
  }
  return {};
}

// An id has no character that JSON would want escaped.
std::string OutboxCallBody(std::string_view call_id) {
  return "{\"call\":\"" + std::string(call_id) + "\"}";
}

Status AddToOutbox(Store& store, std::span<const std::string> receivers, std::string_view tenant,
                   std::string_view body, Durability durability) {
  if (receivers.empty()) {
    return {};
  }
  Core& core = store.core();
  return core.Write(durability, [&](Connection& db) {
    return PutInOutbox(db, core.Now(), receivers, tenant, body);
  });
}

Result<std::vector<OutboxRow>> ListDue(Store& store, AllTenants /*tag*/, std::string_view receiver,
                                       uint32_t limit) {
  Core& core = store.core();
  return core.Read([&](Connection& db) -> Result<std::vector<OutboxRow>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT id, tenant, body, created_at, attempts FROM outbox "
                        "WHERE target = ? AND next_at <= ? "
                        "ORDER BY next_at, id LIMIT ?",
                        receiver, core.Now(), static_cast<int64_t>(limit)));
    std::vector<OutboxRow> rows;
    for (;;) {
      TRY_ASSIGN(const bool row, query.Step());
      if (!row) {
        return rows;
      }
      rows.push_back({query.Int(0), query.Text(1), query.Text(2), query.Time(3),
                      static_cast<uint32_t>(std::min<uint64_t>(query.Count(4), UINT32_MAX))});
    }
  });
}

Status RemoveSent(Store& store, AllTenants /*tag*/, std::span<const int64_t> ids) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Status {
    for (const int64_t id : ids) {
      TRY(db.Run("DELETE FROM outbox WHERE id = ?", id));
    }
    return {};
  });
}

Status Postpone(Store& store, AllTenants /*tag*/, std::span<const int64_t> ids, Nanos until) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Status {
    for (const int64_t id : ids) {
      TRY(db.Run("UPDATE outbox SET next_at = ?2, attempts = attempts + 1 WHERE id = ?1", id,
                 until));
    }
    return {};
  });
}

Result<uint64_t> TrimOutbox(Store& store, AllTenants /*tag*/, uint64_t most) {
  // Ids only grow: there cannot be more rows than lie between the first and the last. Two look-ups.
  TRY_ASSIGN(const int64_t range, store.core().Read([](Connection& db) {
    return db.Number(
        "SELECT ifnull((SELECT max(id) FROM outbox) - (SELECT min(id) FROM outbox) + 1, 0)");
  }));
  if (static_cast<uint64_t>(range) <= most) {
    return uint64_t{0};
  }
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Result<uint64_t> {
    TRY_ASSIGN(const int64_t count, db.Number("SELECT count(*) FROM outbox"));
    if (static_cast<uint64_t>(count) <= most) {
      return uint64_t{0};
    }
    TRY(db.Run("DELETE FROM outbox WHERE id IN (SELECT id FROM outbox ORDER BY id LIMIT ?)",
               count - static_cast<int64_t>(most)));
    return static_cast<uint64_t>(db.changes());
  });
}

Result<uint64_t> ForgetOtherReceivers(Store& store, AllTenants /*tag*/,
                                      std::span<const std::string> receivers) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) -> Result<uint64_t> {
    std::vector<std::string> others;
    {
      TRY_ASSIGN(Statement query, db.Prepare("SELECT DISTINCT target FROM outbox"));
      for (;;) {
        TRY_ASSIGN(const bool row, query.Step());
        if (!row) {
          break;
        }
        if (std::find(receivers.begin(), receivers.end(), query.Text(0)) == receivers.end()) {
          others.push_back(query.Text(0));
        }
      }
    }
    uint64_t removed = 0;
    for (const std::string& other : others) {
      TRY(db.Run("DELETE FROM outbox WHERE target = ?", other));
      removed += static_cast<uint64_t>(db.changes());
    }
    return removed;
  });
}

}  // namespace coffer::store
