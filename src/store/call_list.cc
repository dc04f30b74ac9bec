// SPDX-License-Identifier: Apache-2.0
#include "store/call_list.h"

#include "store/call_row.h"
#include "store/core.h"
#include "store/lineage.h"

namespace coffer::store {
namespace {

// Empty and NULL parameters do not filter.
#define FILTERS                                                                     \
  "AND id < ?2 AND (?3 = '' OR session_id = ?3) AND (?4 = '' OR agent = ?4) "       \
  "AND (?5 = '' OR tool = ?5) AND (?6 = '' OR error_class = ?6) "                   \
  "AND (?7 IS NULL OR state = ?7) AND (?8 IS NULL OR outcome = ?8) "                \
  "AND (?9 IS NULL OR requested_at >= ?9) AND (?10 IS NULL OR requested_at < ?10) " \
  "ORDER BY id DESC LIMIT ?11"

constexpr const char* kOfTenant = "SELECT " CALL_COLUMNS " FROM calls WHERE tenant = ?1 " FILTERS;
constexpr const char* kOfAll = "SELECT " CALL_COLUMNS " FROM calls WHERE ?1 IS NULL " FILTERS;

Result<std::vector<Call>> ReadAll(Statement& query) {
  std::vector<Call> calls;
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return calls;
    }
    TRY_ASSIGN(Call call, ReadCall(query));
    calls.push_back(std::move(call));
  }
}

Result<Page<Call>> List(Store& store, const std::optional<std::string>& tenant,
                        const CallFilter& filter, const PageRequest& page) {
  const auto state =
      filter.state.has_value() ? std::optional(CallStateName(*filter.state)) : std::nullopt;
  const auto outcome =
      filter.outcome.has_value() ? std::optional(OutcomeName(*filter.outcome)) : std::nullopt;
  return store.core().Read([&](Connection& db) -> Result<Page<Call>> {
    TRY_ASSIGN(Statement query,
               db.Query(tenant.has_value() ? kOfTenant : kOfAll, tenant, page.Before(),
                        filter.session_id, filter.agent, filter.tool, filter.error_class, state,
                        outcome, filter.since, filter.until, page.Rows() + 1));
    Page<Call> found;
    TRY_ASSIGN(found.rows, ReadAll(query));
    if (static_cast<int64_t>(found.rows.size()) > page.Rows()) {
      found.rows.pop_back();
      found.next = found.rows.back().id;
    }
    return found;
  });
}

}  // namespace

Result<Page<Call>> ListCalls(Store& store, const TenantId& tenant, const CallFilter& filter,
                             const PageRequest& page) {
  return List(store, tenant.name(), filter, page);
}

Result<Page<Call>> ListCalls(Store& store, AllTenants /*tag*/, const CallFilter& filter,
                             const PageRequest& page) {
  return List(store, std::nullopt, filter, page);
}

Result<std::vector<Call>> OpenCalls(Store& store, const TenantId& tenant) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<Call>> {
    TRY_ASSIGN(Statement query, db.Query("SELECT " CALL_COLUMNS " FROM calls INDEXED BY calls_open "
                                         "WHERE tenant = ? AND finished_at IS NULL ORDER BY id",
                                         tenant.name()));
    return ReadAll(query);
  });
}

Result<std::vector<Call>> OpenCalls(Store& store, AllTenants /*tag*/) {
  return store.core().Read([](Connection& db) -> Result<std::vector<Call>> {
    TRY_ASSIGN(Statement query,
               db.Prepare("SELECT " CALL_COLUMNS " FROM calls INDEXED BY calls_open "
                          "WHERE finished_at IS NULL ORDER BY id"));
    return ReadAll(query);
  });
}

Result<std::vector<Call>> CallChain(Store& store, const TenantId& tenant, std::string_view id) {
  return store.core().Read([&](Connection& db) { return ChainIn(db, tenant, id); });
}

}  // namespace coffer::store
