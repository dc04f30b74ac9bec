// SPDX-License-Identifier: Apache-2.0
//
// What a store holds, read past its functions: no program asks for this, and tests need it to see what a call left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/call_row.h"
#include "store/core.h"
#include "store/quota.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::test {

// SQLite's full check. The error says what is wrong.
inline Status CheckIntegrity(store::Store& store) {
  return store.core().Read(
      [](store::Connection& db) { return db.ReadAll("PRAGMA integrity_check(1)"); });
}

// Rows of all tenants and receivers.
inline Result<int64_t> CountOutbox(store::Store& store) {
  return store.core().Read(
      [](store::Connection& db) { return db.Number("SELECT count(*) FROM outbox"); });
}

// As the tenant's row says, also after its period is over: the next call starts a new one.
inline Result<store::Spent> TenantSpent(store::Store& store, const store::TenantId& tenant) {
  return store.core().Read([&](store::Connection& db) -> Result<store::Spent> {
    TRY_ASSIGN(store::Statement query,
               db.Query("SELECT calls, retries, cpu, bytes_out FROM spent "
                        "WHERE tenant = ? AND scope = 'tenant' AND name = ''",
                        tenant.name()));
    TRY_ASSIGN(const bool row, query.Step());
    return row ? store::Spent{query.Count(0), query.Count(1), query.Time(2), query.Count(3)}
               : store::Spent();
  });
}

// What a retry with the call's key would get; nothing if there is none, or none any more.
inline Result<std::optional<std::string>> FindResult(store::Store& store,
                                                     const store::TenantId& tenant,
                                                     std::string_view id) {
  return store.core().Read([&](store::Connection& db) {
    return store::FindDocument(db, tenant, id, store::Document::kResult);
  });
}

}  // namespace coffer::test
