// SPDX-License-Identifier: Apache-2.0
#include "store/call.h"

#include <fmt/format.h>

#include "base/text.h"
#include "store/call_row.h"
#include "store/core.h"
#include "store/outbox.h"
#include "store/quota_take.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

// The call, if it may go to `to` now and this process owns it. An Error says why not.
Result<Call> FindForTransition(Core& core, Connection& db, const TenantId& tenant,
                               std::string_view id, CallState to) {
  TRY_ASSIGN(Statement query, db.Query("SELECT " CALL_COLUMNS ", owner FROM calls "
                                       "WHERE tenant = ? AND id = ?",
                                       tenant.name(), id));
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return Refused("store.call", "there is no call " + Printable(id));
  }
  TRY_ASSIGN(Call call, ReadCall(query));
  if (query.Int(kCallColumns) != core.owner->number()) {
    return Internal("store.owner", "call " + call.identity.call_id + " belongs to another process");
  }
  if (!IsLegal(call.state, to)) {
    return Internal("store.state",
                    fmt::format("call {} cannot go from {} to {}", call.identity.call_id,
                                CallStateName(call.state), CallStateName(to)));
  }
  return call;
}

Status Decide(Core& core, Connection& db, const Call& call, const CallDecision& decision,
              CallState to) {
  TRY(db.Run(
      "UPDATE calls SET state = ?3, waiting = (?3 = 'gated'), tool_version = ?4, "
      "manifest_hash = ?5, envelope_id = ?6, effect = ?7, decided_at = ?8 "
      "WHERE tenant = ?1 AND id = ?2",
      call.identity.tenant.name(), call.identity.call_id, CallStateName(to), decision.tool_version,
      decision.manifest_hash, decision.envelope_id, decision.effect, core.Now()));
  TRY(KeepObject(core, db, call.identity.tenant, decision.manifest_hash, decision.manifest));
  TRY(KeepObject(core, db, call.identity.tenant, decision.envelope_id, decision.envelope));
  return PutDocument(db, call.identity.tenant, call.identity.call_id, Document::kArgs,
                     decision.args_redacted);
}

Status Start(Core& core, Connection& db, const TenantId& tenant, std::string_view id,
             const Supervisor& supervisor) {
  return db.Run(
      "UPDATE calls SET state = 'started', started_at = ?3, supervisor_pid = ?4, "
      "supervisor_start = ?5, supervisor_boot = ?6 WHERE tenant = ?1 AND id = ?2",
      tenant.name(), id, core.Now(), supervisor.pid, supervisor.start_time, supervisor.boot_id);
}

Status CheckOutcome(CallState to, Outcome outcome) {
  bool good = false;
  switch (outcome) {
    case Outcome::kSuccess:
    case Outcome::kTerminated:
      good = to == CallState::kFinished;
      break;
    case Outcome::kError:
    case Outcome::kDenied:
      good = to == CallState::kFinished || to == CallState::kRefused;
      break;
    case Outcome::kUnknown:
      good = to == CallState::kUnknown;
      break;
    case Outcome::kGated:
      break;
  }
  if (!good) {
    return Internal("store.outcome", fmt::format("a call that is {} cannot have the outcome {}",
                                                 CallStateName(to), OutcomeName(outcome)));
  }
  return {};
}

Status EndCall(Core& core, Connection& db, const Call& call, const CallEnd& end, CallState to,
               KeyFate key_fate) {
  const Nanos now = core.Now();
  const Nanos finished = end.finished_at == Nanos(0) ? now : end.finished_at;
  const bool says_start = to != CallState::kRefused && end.started_at != Nanos(0);
  if (end.decision.has_value() && to == CallState::kRefused) {
    TRY(Decide(core, db, call, *end.decision, call.state));
  }
  TRY(
      db.Run("UPDATE calls SET state = ?3, waiting = 0, finished_at = ?4, outcome = ?5, "
             "error_class = nullif(?6, ''), error_message = ?7, exit_code = ?8, exit_signal = ?9, "
             "cpu = ?10, "
             "bytes_out = ?11, denials = ?12, log_index = ?13, "
             "started_at = coalesce(?14, started_at) WHERE tenant = ?1 AND id = ?2",
             call.identity.tenant.name(), call.identity.call_id, CallStateName(to), finished,
             OutcomeName(end.outcome), end.error_class, end.error_message, end.exit_code,
             end.exit_signal, end.cpu, end.bytes_out, end.denials, end.log_index,
             says_start ? std::optional(end.started_at) : std::nullopt));
  TRY(PutDocument(db, call.identity.tenant, call.identity.call_id, Document::kReceipt,
                  end.receipt));
  TRY(PutDocument(db, call.identity.tenant, call.identity.call_id, Document::kResult, end.result));
  TRY(PutDocument(db, call.identity.tenant, call.identity.call_id, Document::kTranscript,
                  end.transcript));
  for (const CallEnd::File& file : end.files) {
    TRY(PutCallFile(db, call.identity.tenant, call.identity.call_id, file.path, file.bytes));
  }
  TRY(PutInOutbox(db, now, end.send_to, call.identity.tenant.name(),
                  OutboxCallBody(call.identity.call_id)));
  if (to == CallState::kRefused) {
    if (key_fate == KeyFate::kRelease) {
      return ReleaseKey(db, call.identity.tenant, call.identity.call_id);
    }
    return NoteFailure(db, call, now);
  }
  TRY(AddSpent(db, call, end.cpu, end.bytes_out));
  return end.outcome == Outcome::kSuccess ? NoteSuccess(db, call, now) : NoteFailure(db, call, now);
}

Status SettleEnd(Connection& db, const TenantId& tenant, std::string_view id,
                 const SettledEnd& end) {
  return db.Run(
      "UPDATE calls SET state = ?3, outcome = ?4, error_class = nullif(?5, ''), error_message = "
      "?6, finished_at = ?7, started_at = CASE ?3 WHEN 'refused' THEN NULL ELSE "
      "coalesce(started_at, requested_at) END, reason = CASE ?3 WHEN 'refused' THEN '' ELSE reason "
      "END WHERE tenant = ?1 AND id = ?2",
      tenant.name(), id, CallStateName(end.state), OutcomeName(end.outcome), end.error_class,
      end.error_message, end.finished_at);
}

Status EndCall(Store& store, const TenantId& tenant, std::string_view id, const CallEnd& end,
               CallState to, KeyFate key_fate) {
  TRY(CheckOutcome(to, end.outcome));
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Status {
    TRY_ASSIGN(const Call call, FindForTransition(core, db, tenant, id, to));
    return EndCall(core, db, call, end, to, key_fate);
  });
}

Result<std::optional<std::string>> ReadDocument(Store& store, const TenantId& tenant,
                                                std::string_view id, Document kind) {
  return store.core().Read([&](Connection& db) { return FindDocument(db, tenant, id, kind); });
}

}  // namespace

bool IsLegal(CallState from, CallState to) {
  switch (from) {
    case CallState::kAdmitted:
      return to == CallState::kGated || to == CallState::kRecorded || to == CallState::kRefused;
    case CallState::kGated:
      return to == CallState::kRecorded || to == CallState::kRefused;
    case CallState::kRecorded:
      return to == CallState::kStarted || to == CallState::kRefused;
    case CallState::kStarted:
      return to == CallState::kFinished || to == CallState::kUnknown;
    case CallState::kFinished:
    case CallState::kRefused:
    case CallState::kUnknown:
      return false;
  }
  return false;
}

Status GateCall(Store& store, const TenantId& tenant, std::string_view id,
                const CallDecision& decision) {
  Core& core = store.core();
  return core.Write(Durability::kOnDisk, [&](Connection& db) -> Status {
    TRY_ASSIGN(const Call call, FindForTransition(core, db, tenant, id, CallState::kGated));
    return Decide(core, db, call, decision, CallState::kGated);
  });
}

Status RecordCall(Store& store, const TenantId& tenant, std::string_view id,
                  const CallDecision& decision, Durability durability) {
  Core& core = store.core();
  return core.Write(durability, [&](Connection& db) -> Status {
    TRY_ASSIGN(const Call call, FindForTransition(core, db, tenant, id, CallState::kRecorded));
    return Decide(core, db, call, decision, CallState::kRecorded);
  });
}

Status StartCall(Store& store, const TenantId& tenant, std::string_view id,
                 const Supervisor& supervisor, Durability durability) {
  Core& core = store.core();
  return core.Write(durability, [&](Connection& db) -> Status {
    TRY_ASSIGN(const Call call, FindForTransition(core, db, tenant, id, CallState::kStarted));
    return Start(core, db, tenant, call.identity.call_id, supervisor);
  });
}

Status RecordAndStartCall(Store& store, const TenantId& tenant, std::string_view id,
                          const CallDecision& decision, const Supervisor& supervisor,
                          Durability durability) {
  Core& core = store.core();
  return core.Write(durability, [&](Connection& db) -> Status {
    TRY_ASSIGN(const Call call, FindForTransition(core, db, tenant, id, CallState::kRecorded));
    TRY(Decide(core, db, call, decision, CallState::kRecorded));
    return Start(core, db, tenant, call.identity.call_id, supervisor);
  });
}

Status FinishCall(Store& store, const TenantId& tenant, std::string_view id, const CallEnd& end) {
  return EndCall(store, tenant, id, end, CallState::kFinished, KeyFate::kKeep);
}

Status LoseCall(Store& store, const TenantId& tenant, std::string_view id, const CallEnd& end) {
  CallEnd lost = end;
  lost.outcome = Outcome::kUnknown;
  return EndCall(store, tenant, id, lost, CallState::kUnknown, KeyFate::kKeep);
}

Status RefuseCall(Store& store, const TenantId& tenant, std::string_view id, const CallEnd& end,
                  KeyFate key_fate) {
  return EndCall(store, tenant, id, end, CallState::kRefused, key_fate);
}

Status AddReceipt(Store& store, const TenantId& tenant, std::string_view id,
                  std::string_view receipt, std::optional<uint64_t> log_index,
                  const std::optional<SettledEnd>& end) {
  return store.core().Write(Durability::kOnDisk, [&](Connection& db) -> Status {
    TRY_ASSIGN(const std::optional<Call> call, FindCallIn(db, tenant, id));
    TRY_ASSIGN(const std::optional<std::string> there,
               FindDocument(db, tenant, id, Document::kReceipt));
    if (!call.has_value() || !HasEnded(call->state) || there.has_value()) {
      return Internal("store.receipt", "only a call that ended without a receipt can be given one");
    }
    TRY(db.Run("UPDATE calls SET log_index = ?3 WHERE tenant = ?1 AND id = ?2", tenant.name(), id,
               log_index));
    if (end.has_value()) {
      TRY(SettleEnd(db, tenant, id, *end));
    }
    return PutDocument(db, tenant, id, Document::kReceipt, receipt);
  });
}

Result<std::optional<Call>> FindCall(Store& store, const TenantId& tenant, std::string_view id) {
  return store.core().Read([&](Connection& db) { return FindCallIn(db, tenant, id); });
}

Result<std::optional<std::string>> FindReceipt(Store& store, const TenantId& tenant,
                                               std::string_view id) {
  return ReadDocument(store, tenant, id, Document::kReceipt);
}

Result<std::optional<std::string>> FindArgs(Store& store, const TenantId& tenant,
                                            std::string_view id) {
  return ReadDocument(store, tenant, id, Document::kArgs);
}

}  // namespace coffer::store
