// SPDX-License-Identifier: Apache-2.0
#include "store/recovery.h"

#include <map>

#include "store/call_row.h"
#include "store/core.h"

namespace coffer::store {
namespace {

// Of dead processes: calls that have not ended, and those that an earlier recovery ended and did not clean up after.
Result<std::vector<Call>> FindDead(Core& core, Connection& db) {
  std::vector<Call> dead;
  std::map<int64_t, bool> alive;
  for (const char* sql :
       {"SELECT " CALL_COLUMNS ", owner FROM calls INDEXED BY calls_open WHERE finished_at IS NULL",
        "SELECT " CALL_COLUMNS
        ", owner FROM calls INDEXED BY calls_cleanup WHERE cleanup = 1 AND finished_at IS NOT "
        "NULL"}) {
    TRY_ASSIGN(Statement query, db.Prepare(sql));
    for (;;) {
      TRY_ASSIGN(const bool row, query.Step());
      if (!row) {
        break;
      }
      const int64_t owner = query.Int(kCallColumns);
      if (alive.find(owner) == alive.end()) {
        TRY_ASSIGN(alive[owner], core.owner->IsHeld(owner));
      }
      if (!alive[owner]) {
        TRY_ASSIGN(Call call, ReadCall(query));
        dead.push_back(std::move(call));
      }
    }
  }
  return dead;
}

CallState LeftIn(const Call& call) {
  if (!HasEnded(call.state)) {
    return call.state;
  }
  if (call.started_at.has_value()) {
    return CallState::kStarted;
  }
  return call.decided_at.has_value() ? CallState::kRecorded : CallState::kAdmitted;
}

Status EndOne(Core& core, Connection& db, Call& call) {
  const bool started = call.state == CallState::kStarted;
  call.state = started ? CallState::kUnknown : CallState::kRefused;
  call.outcome = started ? Outcome::kUnknown : Outcome::kError;
  call.error_class = "internal";
  call.error_message = started ? kKilledWhileRunning : kKilledBefore;
  call.finished_at = core.Now();
  TRY(
      db.Run("UPDATE calls SET state = ?3, waiting = 0, outcome = ?4, error_class = ?5, "
             "error_message = ?6, finished_at = ?7 WHERE tenant = ?1 AND id = ?2",
             call.identity.tenant.name(), call.identity.call_id, CallStateName(call.state),
             OutcomeName(*call.outcome), call.error_class, call.error_message, *call.finished_at));
  return started ? Status() : ReleaseKey(db, call.identity.tenant, call.identity.call_id);
}

}  // namespace

Result<std::vector<RecoveredCall>> RecoverCalls(Core& core) {
  using Recovered = std::vector<RecoveredCall>;
  // The usual case, nothing to do, takes no write lock.
  TRY_ASSIGN(const std::vector<Call> any,
             core.Read([&](Connection& db) { return FindDead(core, db); }));
  if (any.empty()) {
    return Recovered();
  }
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Result<Recovered> {
    Recovered recovered;
    // Once more, now with the write lock: another process may have recovered them meanwhile.
    TRY_ASSIGN(std::vector<Call> dead, FindDead(core, db));
    for (Call& call : dead) {
      const CallState left_in = LeftIn(call);
      if (!HasEnded(call.state)) {
        TRY(EndOne(core, db, call));
      }
      TRY(db.Run("UPDATE calls SET owner = ?3, cleanup = 1 WHERE tenant = ?1 AND id = ?2",
                 call.identity.tenant.name(), call.identity.call_id, core.owner->number()));
      recovered.push_back({std::move(call), left_in});
    }
    return recovered;
  });
}

Result<std::vector<RecoveredCall>> RecoverAgain(Store& store, AllTenants /*tag*/) {
  return RecoverCalls(store.core());
}

Status FinishCleanup(Store& store, const TenantId& tenant, std::string_view id) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) {
    return db.Run("UPDATE calls SET cleanup = 0 WHERE tenant = ? AND id = ?", tenant.name(), id);
  });
}

}  // namespace coffer::store
