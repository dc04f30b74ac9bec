// SPDX-License-Identifier: Apache-2.0
#include "store/idempotency.h"

#include "store/call_row.h"
#include "store/retention.h"

namespace coffer::store {

Result<std::optional<Admission>> LookAtKey(Connection& db, const AdmitRequest& request, Nanos now) {
  using Maybe = std::optional<Admission>;
  if (request.idempotency_key.empty()) {
    return Maybe();
  }
  if (request.idempotency_key.size() > 255) {
    return Refused("policy.idempotency", "an idempotency key is at most 255 bytes",
                   "use a UUID for each request");
  }
  if (request.request_hash.empty()) {
    return Internal("store.request", "an idempotency key needs the hash of its request");
  }
  TRY_ASSIGN(Statement query,
             db.Query("SELECT i.request_hash, i.call_id, i.created_at, c.state FROM idempotency i "
                      "LEFT JOIN calls c ON c.tenant = i.tenant AND c.id = i.call_id "
                      "WHERE i.tenant = ? AND i.key = ?",
                      request.identity.tenant.name(), request.idempotency_key));
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return Maybe();
  }
  const std::optional<CallState> state = FindCallState(query.Text(3));
  if (!state.has_value()) {
    return HostFault("store.corrupt", "an idempotency key names a call that is not there",
                     "restore coffer.db from a backup");
  }
  if (HasEnded(*state) && now - query.Time(2) >= kIdempotencyTime) {
    return Maybe();
  }
  Admission used;
  used.call_id = query.Text(1);
  used.state = *state;
  if (query.Text(0) != request.request_hash) {
    used.verdict = AdmitVerdict::kKeyConflict;
    used.call_id.clear();
    used.error_class = "policy.idempotency";
    used.reason = "this idempotency key was used for another request";
  } else if (!HasEnded(*state)) {
    used.verdict = AdmitVerdict::kInFlight;
    used.error_class = "policy.idempotency";
    used.reason = "a call with this idempotency key is under way";
    used.retry_after = std::chrono::seconds(1);
  } else {
    used.verdict = AdmitVerdict::kReplay;
    TRY_ASSIGN(const std::optional<std::string> result,
               FindDocument(db, request.identity.tenant, used.call_id, Document::kResult));
    used.result = result.value_or("");
  }
  return Maybe(std::move(used));
}

Status ClaimKey(Connection& db, const AdmitRequest& request, const std::string& call_id,
                Nanos now) {
  if (request.idempotency_key.empty()) {
    return {};
  }
  // One that is there is older than its time: LookAtKey has seen it.
  return db.Run(
      "INSERT OR REPLACE INTO idempotency (tenant, key, request_hash, call_id, created_at) "
      "VALUES (?, ?, ?, ?, ?)",
      request.identity.tenant.name(), request.idempotency_key, request.request_hash, call_id, now);
}

}  // namespace coffer::store
