// SPDX-License-Identifier: Apache-2.0
#include "store/retention.h"

#include <algorithm>

#include "base/ids.h"
#include "store/breaker.h"
#include "store/core.h"

namespace coffer::store {
namespace {

constexpr int64_t kBatch = 200;  // rows in one transaction
constexpr int kBatches = 20;     // of one kind in one Prune
// The longest rate window, and how long a failure is remembered (quota.cc).
constexpr Nanos kCounters = std::chrono::hours(48);
static_assert(kCounters >= kLongestBreakerWindow);

// Parameters: 1 the tenant, 2 the time before which something must have ended, 3 an id: all made before that time are
// smaller, which keeps the search at the old end of the table, 4 how many rows.
#define KEY_IS_KEPT                                                            \
  "EXISTS (SELECT 1 FROM idempotency i WHERE i.tenant = c.tenant AND i.key = " \
  "c.idempotency_key AND i.call_id = c.id)"

constexpr const char* kOldKeys =
    "DELETE FROM idempotency WHERE tenant = ?1 AND key IN (SELECT i.key FROM idempotency i "
    "JOIN calls c ON c.tenant = i.tenant AND c.id = i.call_id "
    "WHERE i.tenant = ?1 AND i.created_at < ?2 AND c.finished_at IS NOT NULL AND ?3 <> '' "
    "LIMIT ?4)";
constexpr const char* kOldResults =
    "DELETE FROM results WHERE tenant = ?1 AND call_id IN (SELECT r.call_id FROM results r "
    "JOIN calls c ON c.tenant = r.tenant AND c.id = r.call_id "
    "WHERE r.tenant = ?1 AND r.call_id < ?3 AND c.finished_at < ?2 AND NOT " KEY_IS_KEPT
    " LIMIT ?4)";
// Files of calls stay as long as the results, and go with their calls at the latest.
constexpr const char* kOldFiles =
    "DELETE FROM call_files WHERE tenant = ?1 AND call_id IN (SELECT f.call_id FROM call_files f "
    "LEFT JOIN calls c ON c.tenant = f.tenant AND c.id = f.call_id WHERE f.tenant = ?1 AND "
    "f.call_id < ?3 AND (c.id IS NULL OR (c.finished_at < ?2 AND NOT " KEY_IS_KEPT ")) LIMIT ?4)";
constexpr const char* kOldCalls =
    "DELETE FROM calls WHERE tenant = ?1 AND id IN (SELECT c.id FROM calls c WHERE c.tenant = ?1 "
    "AND c.id < ?3 AND c.finished_at < ?2 AND c.cleanup = 0 AND NOT " KEY_IS_KEPT " LIMIT ?4)";
constexpr const char* kOrphanDocuments =
    "DELETE FROM documents WHERE tenant = ?1 AND call_id IN (SELECT d.call_id FROM documents d "
    "WHERE d.tenant = ?1 AND d.call_id < ?3 AND ?2 <> 0 AND NOT EXISTS (SELECT 1 FROM calls c "
    "WHERE c.tenant = ?1 AND c.id = d.call_id) LIMIT ?4)";
constexpr const char* kOrphanResults =
    "DELETE FROM results WHERE tenant = ?1 AND call_id IN (SELECT r.call_id FROM results r "
    "WHERE r.tenant = ?1 AND r.call_id < ?3 AND ?2 <> 0 AND NOT EXISTS (SELECT 1 FROM calls c "
    "WHERE c.tenant = ?1 AND c.id = r.call_id) LIMIT ?4)";
constexpr const char* kOldTranscripts =
    "DELETE FROM transcripts WHERE tenant = ?1 AND call_id IN (SELECT t.call_id FROM transcripts t "
    "LEFT JOIN calls c ON c.tenant = t.tenant AND c.id = t.call_id WHERE t.tenant = ?1 AND "
    "t.call_id < ?3 AND (c.id IS NULL OR c.finished_at < ?2) LIMIT ?4)";
// Calls write that they use one once an hour (objects.cc).
constexpr const char* kOldObjects =
    "DELETE FROM objects WHERE (tenant, hash) IN (SELECT tenant, hash FROM objects "
    "WHERE tenant = ?1 AND seen_at < ?2 - 3600000000000 AND ?3 <> '' LIMIT ?4)";
constexpr const char* kOldSessions =
    "DELETE FROM sessions WHERE tenant = ?1 AND id IN (SELECT id FROM sessions WHERE tenant = ?1 "
    "AND id < ?3 AND ended_at < ?2 LIMIT ?4)";
constexpr const char* kOrphanSpent =
    "DELETE FROM spent WHERE tenant = ?1 AND scope = 'session' AND name IN (SELECT p.name FROM "
    "spent p WHERE p.tenant = ?1 AND p.scope = 'session' AND p.name < ?3 AND ?2 <> 0 AND NOT "
    "EXISTS (SELECT 1 FROM sessions s WHERE s.tenant = ?1 AND s.id = p.name) LIMIT ?4)";
constexpr const char* kOldApiKeys =
    "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE tenant = ?1 AND ?3 <> '' AND "
    "(revoked_at < ?2 OR expires_at < ?2) LIMIT ?4)";
constexpr const char* kOldRates =
    "DELETE FROM rates WHERE (tenant, scope, name) IN (SELECT tenant, scope, name FROM rates "
    "WHERE tenant = ?1 AND taken_at < ?2 AND ?3 <> '' LIMIT ?4)";
constexpr const char* kOldFailures =
    "DELETE FROM failures WHERE (tenant, agent, tool, args_hash) IN (SELECT tenant, agent, tool, "
    "args_hash FROM failures WHERE tenant = ?1 AND failed_at < ?2 AND ?3 <> '' LIMIT ?4)";
constexpr const char* kOldProgress =
    "DELETE FROM progress WHERE (tenant, agent) IN (SELECT tenant, agent FROM progress "
    "WHERE tenant = ?1 AND at < ?2 AND ?3 <> '' LIMIT ?4)";
constexpr const char* kOldDenied =
    "DELETE FROM denied_calls WHERE (tenant, tool, agent, call_id) IN (SELECT tenant, tool, agent, "
    "call_id FROM denied_calls WHERE tenant = ?1 AND at < ?2 AND ?3 <> '' LIMIT ?4)";
constexpr const char* kOldPauses =
    "DELETE FROM pauses WHERE (tenant, tool, agent) IN (SELECT tenant, tool, agent FROM pauses "
    "WHERE tenant = ?1 AND until < ?2 AND ?3 <> '' LIMIT ?4)";

// In several transactions, until there is nothing left to do or it was enough for now.
Status Remove(Core& core, const char* sql, const TenantId& tenant, Nanos before,
              uint64_t& removed) {
  const std::string first_kept = IdBound(std::max(before, Nanos(0)));
  for (int i = 0; i < kBatches; ++i) {
    int64_t changed = 0;
    const Status done = core.Write(Durability::kCommitted, [&](Connection& db) -> Status {
      TRY(db.Run(sql, tenant.name(), before, first_kept, kBatch));
      changed = db.changes();
      return {};
    });
    TRY(done);
    removed += static_cast<uint64_t>(changed);
    if (changed < kBatch) {
      break;
    }
  }
  return {};
}

Status PruneTenant(Core& core, const TenantId& tenant, const Retention& retention, Nanos now,
                   Pruned& pruned) {
  const Nanos calls = now - std::max(retention.calls, kIdempotencyTime);
  const Nanos results = ResultsKeptSince(retention, now);
  uint64_t belongings = 0;  // rows of a call, session or key, not counted again
  // Keys first: a call stays as long as its key does.
  TRY(Remove(core, kOldKeys, tenant, now - kIdempotencyTime, pruned.idempotency_keys));
  TRY(Remove(core, kOldResults, tenant, results, pruned.results));
  TRY(Remove(core, kOldFiles, tenant, results, belongings));
  TRY(Remove(core, kOldTranscripts, tenant, TranscriptsKeptSince(retention, now),
             pruned.transcripts));
  TRY(Remove(core, kOldCalls, tenant, calls, pruned.calls));
  TRY(Remove(core, kOrphanDocuments, tenant, calls, belongings));
  TRY(Remove(core, kOrphanResults, tenant, calls, belongings));
  TRY(Remove(core, kOldObjects, tenant, calls, belongings));
  TRY(Remove(core, kOldSessions, tenant, now - retention.sessions, pruned.sessions));
  TRY(Remove(core, kOrphanSpent, tenant, now - retention.sessions, belongings));
  TRY(Remove(core, kOldApiKeys, tenant, now - retention.keys, pruned.api_keys));
  TRY(Remove(core, kOldRates, tenant, now - kCounters, pruned.counters));
  TRY(Remove(core, kOldFailures, tenant, now - kCounters, pruned.counters));
  TRY(Remove(core, kOldProgress, tenant, now - kCounters, pruned.counters));
  TRY(Remove(core, kOldDenied, tenant, now - kCounters, pruned.counters));
  TRY(Remove(core, kOldPauses, tenant, now, pruned.counters));
  return {};
}

}  // namespace

Nanos TranscriptsKeptSince(const Retention& retention, Nanos now) {
  return now - std::max(std::min(retention.transcripts, retention.calls), kIdempotencyTime);
}

Result<bool> HasTranscriptsBefore(Store& store, const TenantId& tenant, Nanos before) {
  return store.core().Read([&](Connection& db) -> Result<bool> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT 1 FROM transcripts t LEFT JOIN calls c ON c.tenant = t.tenant AND "
                        "c.id = t.call_id WHERE t.tenant = ? AND t.call_id < ? AND (c.id IS NULL "
                        "OR c.finished_at < ?) LIMIT 1",
                        tenant.name(), IdBound(std::max(before, Nanos(0))), before));
    return query.Step();
  });
}

Nanos ResultsKeptSince(const Retention& retention, Nanos now) {
  return now - std::max(retention.results, kIdempotencyTime);
}

Result<bool> HasResultsBefore(Store& store, const TenantId& tenant, Nanos before) {
  return store.core().Read([&](Connection& db) -> Result<bool> {
    for (const char* sql :
         {"SELECT 1 FROM results r JOIN calls c ON c.tenant = r.tenant AND c.id = r.call_id "
          "WHERE r.tenant = ? AND r.call_id < ? AND c.finished_at < ? LIMIT 1",
          "SELECT 1 FROM call_files f JOIN calls c ON c.tenant = f.tenant AND c.id = f.call_id "
          "WHERE f.tenant = ? AND f.call_id < ? AND c.finished_at < ? LIMIT 1"}) {
      TRY_ASSIGN(Statement query,
                 db.Query(sql, tenant.name(), IdBound(std::max(before, Nanos(0))), before));
      TRY_ASSIGN(const bool found, query.Step());
      if (found) {
        return true;
      }
    }
    return false;
  });
}

Result<Pruned> Prune(Store& store, const TenantId& tenant, const Retention& retention, Nanos now) {
  Pruned pruned;
  TRY(PruneTenant(store.core(), tenant, retention, now, pruned));
  return pruned;
}

Result<Pruned> Prune(Store& store, const TenantId& tenant, const Retention& retention) {
  return Prune(store, tenant, retention, store.core().Now());
}

Result<Pruned> Prune(Store& store, AllTenants tag, const Retention& retention) {
  Pruned pruned;
  TRY_ASSIGN(const std::vector<Tenant> tenants, ListTenants(store, tag));
  for (const Tenant& tenant : tenants) {
    TRY(PruneTenant(store.core(), tenant.id, retention, store.core().Now(), pruned));
  }
  return pruned;
}

}  // namespace coffer::store
