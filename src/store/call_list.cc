// SPDX-License-Identifier: Apache-2.0
#include "store/call_list.h"

#include <algorithm>
#include <iterator>

#include "base/ids.h"
#include "store/call_row.h"
#include "store/core.h"
#include "store/lineage.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

// Empty and NULL parameters do not filter. Ids sort by time, so the time is also a range of ids,
// which is what the primary key and every index end in.
#define FILTERS                                                                            \
  "AND id < ?2 AND id >= ?3 AND (?4 = '' OR session_id = ?4) AND (?5 = '' OR agent = ?5) " \
  "AND (?6 = '' OR tool = ?6) AND (?7 = '' OR error_class = ?7) "                          \
  "AND (?8 IS NULL OR state = ?8) AND (?9 IS NULL OR outcome = ?9) "                       \
  "AND (?10 IS NULL OR requested_at >= ?10) AND (?11 IS NULL OR requested_at < ?11) "      \
  "AND (?12 = '' OR trace_id = ?12) AND (?13 = '' OR approval = ?13) "                     \
  "AND (?14 = 0 OR outcome = 'denied') AND (?15 = 0 OR denials > 0) "                      \
  "ORDER BY id DESC LIMIT ?16"
#define OF_TENANT(index, condition) \
  "SELECT " CALL_COLUMNS " FROM calls " index " WHERE tenant = ?1 " condition FILTERS

// The most telling filter decides which index is read; the rest is checked row by row.
const char* QueryFor(const CallFilter& filter) {
  if (!filter.trace_id.empty()) {
    return OF_TENANT("INDEXED BY calls_by_trace", "AND trace_id = ?12 AND trace_id <> '' ");
  }
  if (!filter.session_id.empty()) {
    return OF_TENANT("INDEXED BY calls_by_session", "AND session_id = ?4 AND session_id <> '' ");
  }
  if (!filter.error_class.empty()) {
    return OF_TENANT("INDEXED BY calls_by_error", "AND error_class = ?7 ");
  }
  if (!filter.approval.empty()) {
    return OF_TENANT("INDEXED BY calls_by_approval", "AND approval = ?13 AND approval <> '' ");
  }
  if (filter.denied) {
    return OF_TENANT("INDEXED BY calls_by_outcome", "AND outcome = 'denied' ");
  }
  if (filter.probed) {
    return OF_TENANT("INDEXED BY calls_by_denial", "AND denials > 0 ");
  }
  if (filter.outcome.has_value()) {
    return OF_TENANT("INDEXED BY calls_by_outcome", "AND outcome = ?9 ");
  }
  if (!filter.tool.empty()) {
    return OF_TENANT("INDEXED BY calls_by_tool", "AND tool = ?6 ");
  }
  if (!filter.agent.empty()) {
    return OF_TENANT("INDEXED BY calls_by_agent", "AND agent = ?5 ");
  }
  return OF_TENANT("", "");
}

Result<std::vector<Call>> ReadCalls(Statement& query) {
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

}  // namespace

Result<Page<Call>> ListCalls(Store& store, const TenantId& tenant, const CallFilter& filter,
                             const PageRequest& page) {
  const auto state =
      filter.state.has_value() ? std::optional(CallStateName(*filter.state)) : std::nullopt;
  const auto outcome =
      filter.outcome.has_value() ? std::optional(OutcomeName(*filter.outcome)) : std::nullopt;
  const std::string cursor(page.Before());
  const std::string until =
      filter.until ? IdBound(*filter.until + std::chrono::milliseconds(1)) : "~";
  const std::string before = std::min(cursor, until);
  const std::string since = filter.since ? IdBound(*filter.since) : "";
  return store.core().Read([&](Connection& db) -> Result<Page<Call>> {
    TRY_ASSIGN(
        Statement query,
        db.Query(QueryFor(filter), tenant.name(), before, since, filter.session_id, filter.agent,
                 filter.tool, filter.error_class, state, outcome, filter.since, filter.until,
                 filter.trace_id, filter.approval, static_cast<int64_t>(filter.denied),
                 static_cast<int64_t>(filter.probed), page.Rows() + 1));
    Page<Call> found;
    TRY_ASSIGN(found.rows, ReadCalls(query));
    if (static_cast<int64_t>(found.rows.size()) > page.Rows()) {
      found.rows.pop_back();
      found.next = found.rows.back().identity.call_id;
    }
    return found;
  });
}

// Tenant by tenant: every index begins with the tenant.
Result<Page<Call>> ListCalls(Store& store, AllTenants tag, const CallFilter& filter,
                             const PageRequest& page) {
  TRY_ASSIGN(const std::vector<Tenant> tenants, ListTenants(store, tag));
  Page<Call> all;
  bool more = false;
  for (const Tenant& tenant : tenants) {
    TRY_ASSIGN(Page<Call> found, ListCalls(store, tenant.id, filter, page));
    more = more || !found.next.empty();
    std::move(found.rows.begin(), found.rows.end(), std::back_inserter(all.rows));
  }
  std::sort(all.rows.begin(), all.rows.end(),
            [](const Call& a, const Call& b) { return a.identity.call_id > b.identity.call_id; });
  const auto most = static_cast<size_t>(page.Rows());
  more = more || all.rows.size() > most;
  all.rows.resize(std::min(all.rows.size(), most));
  if (more) {
    all.next = all.rows.back().identity.call_id;
  }
  return all;
}

Result<std::optional<Call>> FindCall(Store& store, AllTenants /*tag*/, std::string_view id) {
  return store.core().Read([&](Connection& db) -> Result<std::optional<Call>> {
    TRY_ASSIGN(Statement query, db.Query("SELECT " CALL_COLUMNS " FROM calls "
                                         "WHERE tenant IN (SELECT name FROM tenants) AND id = ?",
                                         id));
    TRY_ASSIGN(std::vector<Call> calls, ReadCalls(query));
    return calls.empty() ? std::nullopt : std::optional<Call>(std::move(calls.front()));
  });
}

Result<std::vector<Call>> ChildCalls(Store& store, const TenantId& tenant, std::string_view id) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<Call>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT " CALL_COLUMNS " FROM calls INDEXED BY calls_by_parent "
                        "WHERE tenant = ? AND parent_id = ? AND parent_id <> '' "
                        "ORDER BY id LIMIT 1000",
                        tenant.name(), id));
    return ReadCalls(query);
  });
}

Result<std::vector<Call>> OpenCalls(Store& store, const TenantId& tenant) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<Call>> {
    TRY_ASSIGN(Statement query, db.Query("SELECT " CALL_COLUMNS " FROM calls INDEXED BY calls_open "
                                         "WHERE tenant = ? AND finished_at IS NULL ORDER BY id",
                                         tenant.name()));
    return ReadCalls(query);
  });
}

Result<std::vector<Call>> OpenCalls(Store& store, AllTenants /*tag*/) {
  return store.core().Read([](Connection& db) -> Result<std::vector<Call>> {
    TRY_ASSIGN(Statement query,
               db.Prepare("SELECT " CALL_COLUMNS " FROM calls INDEXED BY calls_open "
                          "WHERE finished_at IS NULL ORDER BY id"));
    return ReadCalls(query);
  });
}

Result<StoredCall> ReadStored(Store& store, const Call& call) {
  return store.core().Read([&](Connection& db) -> Result<StoredCall> {
    StoredCall stored;
    stored.call = call;
    stored.log_index = call.log_index ? static_cast<int64_t>(*call.log_index) : -1;
    TRY_ASSIGN(stored.receipt,
               FindDocument(db, call.identity.tenant, call.identity.call_id, Document::kReceipt));
    TRY_ASSIGN(stored.result,
               FindDocument(db, call.identity.tenant, call.identity.call_id, Document::kResult));
    TRY_ASSIGN(stored.args,
               FindDocument(db, call.identity.tenant, call.identity.call_id, Document::kArgs));
    TRY_ASSIGN(stored.transcript, FindDocument(db, call.identity.tenant, call.identity.call_id,
                                               Document::kTranscript));
    return stored;
  });
}

Result<std::vector<StoredCall>> ListByRecord(Store& store, AllTenants /*tag*/, RecordPlace& after,
                                             uint32_t limit) {
  constexpr size_t kManyBytes = 4 << 20;
  return store.core().Read([&](Connection& db) -> Result<std::vector<StoredCall>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT " CALL_COLUMNS ", "
                        "(SELECT body FROM documents WHERE tenant = calls.tenant "
                        "AND call_id = calls.id AND kind = 'receipt'), "
                        "(SELECT body FROM results WHERE tenant = calls.tenant "
                        "AND call_id = calls.id), "
                        "(SELECT body FROM documents WHERE tenant = calls.tenant "
                        "AND call_id = calls.id AND kind = 'args'), "
                        "(SELECT body FROM transcripts WHERE tenant = calls.tenant "
                        "AND call_id = calls.id) "
                        "FROM calls INDEXED BY calls_by_log "
                        "WHERE finished_at IS NOT NULL AND (log_index, tenant, id) > (?, ?, ?) "
                        "ORDER BY log_index, tenant, id LIMIT ?",
                        after.log_index, after.tenant, after.id, static_cast<int64_t>(limit)));
    const auto body = [&](int column) {
      return query.IsNull(column) ? std::nullopt : std::optional(query.Text(column));
    };
    std::vector<StoredCall> calls;
    for (size_t bytes = 0; bytes < kManyBytes;) {
      TRY_ASSIGN(const bool row, query.Step());
      if (!row) {
        break;
      }
      TRY_ASSIGN(Call call, ReadCall(query));
      after = {query.Int(kCallColumns - 1), call.identity.tenant.name(), call.identity.call_id};
      calls.push_back({std::move(call), after.log_index, body(kCallColumns), body(kCallColumns + 1),
                       body(kCallColumns + 2), body(kCallColumns + 3), std::nullopt});
      StoredCall& read = calls.back();
      TRY_ASSIGN(read.files, HashCallFilesIn(db, after.tenant, after.id));
      for (const auto* part : {&read.receipt, &read.result, &read.args, &read.transcript}) {
        bytes += *part ? (*part)->size() : 0;
      }
    }
    return calls;
  });
}

Result<std::vector<Call>> ListUnlogged(Store& store, AllTenants /*tag*/, uint32_t limit) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<Call>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT " CALL_COLUMNS " FROM calls INDEXED BY calls_by_log "
                        "WHERE finished_at IS NOT NULL AND log_index IS NULL "
                        "ORDER BY tenant, id LIMIT ?",
                        static_cast<int64_t>(limit)));
    return ReadCalls(query);
  });
}

}  // namespace coffer::store
