// SPDX-License-Identifier: Apache-2.0
#include "store/admission.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "policy/reason.h"
#include "store/call_row.h"
#include "store/core.h"
#include "store/idempotency.h"
#include "store/lineage.h"
#include "store/outbox.h"
#include "store/quota_take.h"
#include "store/rows.h"

// Open and to be cleaned up after: no other row is both.
#define ONLY_ANNOUNCED "WHERE state = 'admitted' AND cleanup = 1"

namespace coffer::store {
namespace {

Admission NotAdmitted(AdmitVerdict verdict, std::string_view error_class, std::string reason) {
  Admission admission;
  admission.verdict = verdict;
  admission.error_class = error_class;
  admission.reason = std::move(reason);
  return admission;
}

Result<std::optional<Admission>> LookAtSwitches(Connection& db, const AdmitRequest& request) {
  using Maybe = std::optional<Admission>;
  TRY_ASSIGN(
      const std::optional<Switch> found,
      FindSwitchIn(db, request.identity.tenant,
                   {request.identity.tool, request.identity.agent, request.identity.session_id}));
  if (!found.has_value()) {
    return Maybe();
  }
  return Maybe(NotAdmitted(AdmitVerdict::kSwitchedOff, "policy.switch",
                           found->kind == SwitchKind::kDisabledTool
                               ? std::string("this tool is disabled")
                               : fmt::format("this {} is stopped", SwitchKindName(found->kind))));
}

Result<std::optional<Admission>> LookAtPause(Connection& db, const AdmitRequest& request,
                                             Nanos now) {
  using Maybe = std::optional<Admission>;
  const CallIdentity& by = request.identity;
  TRY_ASSIGN(const std::optional<Pause> pause, FindPauseIn(db, by.tenant, by.tool, by.agent, now));
  if (!pause.has_value()) {
    return Maybe();
  }
  Admission paused = NotAdmitted(
      AdmitVerdict::kPaused, "policy.breaker",
      fmt::format("calls of {} by this agent are paused until {}, because {}; an operator can let "
                  "them go on earlier",
                  by.tool, FormatTime(pause->until), pause->why));
  paused.retry_after = pause->until - now;
  return Maybe(std::move(paused));
}

// Another agent's session is answered like one that does not exist: its existence is not shown.
std::optional<Admission> LookAtSession(const AdmitRequest& request,
                                       const std::optional<Session>& session, Nanos now) {
  if (request.identity.session_id.empty()) {
    return std::nullopt;
  }
  if (!session.has_value() || session->agent != request.identity.agent) {
    return NotAdmitted(AdmitVerdict::kNoSession, "policy.session", "there is no such session");
  }
  if (session->ended_at.has_value() || now >= session->ends_at) {
    return NotAdmitted(AdmitVerdict::kSessionEnded, "policy.session", "the session has ended");
  }
  return std::nullopt;
}

// Untrusted input: check sizes first.
Status CheckSizes(const AdmitRequest& request) {
  for (const std::string* name :
       {&request.identity.tool, &request.identity.agent, &request.identity.user, &request.args_hash,
        &request.request_hash, &request.identity.session_id, &request.identity.parent_id,
        &request.identity.trace_id}) {
    if (name->size() > 256) {
      return Refused("policy.request", "a name in the request is longer than 256 bytes");
    }
  }
  // Checked where it came in; scrubbing may have made it longer.
  if (request.identity.reason.size() > 4 * policy::kMostReasonBytes) {
    return Refused("policy.request", "the reason is too long");
  }
  return {};
}

Nanos RequestTime(const Core& core, const AdmitRequest& request) {
  return request.requested_at == Nanos(0) ? core.Now() : request.requested_at;
}

Result<Admission> Admit(Core& core, Connection& db, const AdmitRequest& request,
                        const std::string& id) {
  const Nanos now = core.Now();
  TRY(CheckTenantIn(db, request.identity.tenant));
  TRY_ASSIGN(std::optional<Admission> no, LookAtSwitches(db, request));
  if (no.has_value()) {
    return *no;
  }
  TRY_ASSIGN(no, LookAtKey(db, request, now));
  if (no.has_value()) {
    return *no;
  }
  TRY_ASSIGN(no, LookAtPause(db, request, now));
  if (no.has_value()) {
    return *no;
  }
  std::optional<Session> session;
  if (!request.identity.session_id.empty()) {
    TRY_ASSIGN(session, FindSessionIn(db, request.identity.tenant, request.identity.session_id));
  }
  no = LookAtSession(request, session, now);
  if (no.has_value()) {
    return *no;
  }
  TRY_ASSIGN(const Place place, FindPlace(db, request));
  if (place.no.has_value()) {
    return *place.no;
  }
  QuotaCheck quotas(db, request, session, now);
  TRY_ASSIGN(no, request.invalid ? quotas.ChargeInvalid() : quotas.Look());
  if (no.has_value()) {
    return *no;
  }

  if (!request.invalid) {
    TRY(quotas.Take());
  }
  TRY(ClaimKey(db, request, id, now));
  TRY(db.Run(
      "INSERT INTO calls (tenant, id, state, owner, parent_id, session_id, depth, agent, "
      "user, tool, args_hash, idempotency_key, requested_at, trace_id, reason) "
      "VALUES (?, ?, 'admitted', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      request.identity.tenant.name(), id, core.owner->number(), request.identity.parent_id,
      request.identity.session_id, static_cast<int64_t>(place.depth), request.identity.agent,
      request.identity.user, request.identity.tool, request.args_hash, request.idempotency_key,
      RequestTime(core, request), request.identity.trace_id, request.identity.reason));
  Admission admitted;
  admitted.call_id = id;
  admitted.depth = place.depth;
  return admitted;
}

}  // namespace

int64_t Admission::RetryAfterSeconds() const {
  return (retry_after.count() + 999'999'999) / 1'000'000'000;
}

Result<Admission> AdmitCall(Store& store, const AdmitRequest& request) {
  TRY(CheckSizes(request));
  Core& core = store.core();
  TRY_ASSIGN(const std::string id, NewId(RequestTime(core, request)));
  return core.Write(Durability::kCommitted,
                    [&](Connection& db) { return Admit(core, db, request, id); });
}

Result<std::optional<Admission>> FindRepetition(Store& store, const AdmitRequest& request) {
  if (request.idempotency_key.empty()) {
    return std::optional<Admission>();
  }
  TRY(CheckSizes(request));
  Core& core = store.core();
  return core.Write(Durability::kCommitted,
                    [&](Connection& db) { return LookAtKey(db, request, core.Now()); });
}

Result<std::optional<Admission>> ChargeRefusal(Store& store, const AdmitRequest& request) {
  const auto unlimited = [](const policy::RateLimits& limits) {
    return limits.calls.empty() && limits.burst == 0;
  };
  if (unlimited(request.quotas.tenant) && unlimited(request.quotas.agent)) {
    return std::optional<Admission>();
  }
  Core& core = store.core();
  return core.Write(Durability::kCommitted, [&](Connection& db) {
    return QuotaCheck(db, request, std::nullopt, core.Now()).Charge();
  });
}

Status AddRefusedCall(Store& store, const AdmitRequest& request, std::string_view id,
                      const CallEnd& end) {
  TRY(CheckSizes(request));
  Core& core = store.core();
  return core.Write(Durability::kCommitted, [&](Connection& db) -> Status {
    TRY(CheckTenantIn(db, request.identity.tenant));
    const Nanos now = core.Now();
    TRY(db.Run(
        "INSERT INTO calls (tenant, id, state, owner, parent_id, session_id, depth, agent, user, "
        "tool, args_hash, idempotency_key, requested_at, trace_id, reason, finished_at, outcome, "
        "error_class, error_message, denials, log_index) "
        "VALUES (?, ?, 'refused', ?, ?, ?, 0, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (tenant, id) DO UPDATE SET state = 'refused', cleanup = 0, "
        "finished_at = excluded.finished_at, outcome = excluded.outcome, "
        "error_class = excluded.error_class, error_message = excluded.error_message, "
        "denials = excluded.denials, log_index = excluded.log_index " ONLY_ANNOUNCED,
        request.identity.tenant.name(), id, core.owner->number(), request.identity.parent_id,
        request.identity.session_id, request.identity.agent, request.identity.user,
        request.identity.tool, request.args_hash, RequestTime(core, request),
        request.identity.trace_id, request.identity.reason,
        end.finished_at == Nanos(0) ? now : end.finished_at, OutcomeName(end.outcome),
        end.error_class, end.error_message, end.denials, end.log_index));
    TRY(PutInOutbox(db, now, end.send_to, request.identity.tenant.name(), OutboxCallBody(id)));
    return PutDocument(db, request.identity.tenant, id, Document::kReceipt, end.receipt);
  });
}

Status AnnounceRefusedCall(Store& store, const AdmitRequest& request, std::string_view id) {
  TRY(CheckSizes(request));
  Core& core = store.core();
  return core.Write(Durability::kCommitted, [&](Connection& db) -> Status {
    const CallIdentity& by = request.identity;
    TRY(CheckTenantIn(db, by.tenant));
    return db.Run(
        "INSERT INTO calls (tenant, id, state, owner, parent_id, session_id, depth, agent, user, "
        "tool, args_hash, idempotency_key, requested_at, trace_id, reason, cleanup) "
        "VALUES (?, ?, 'admitted', ?, ?, ?, 0, ?, ?, ?, ?, '', ?, ?, ?, 1)",
        by.tenant.name(), id, core.owner->number(), by.parent_id, by.session_id, by.agent, by.user,
        by.tool, request.args_hash, RequestTime(core, request), by.trace_id, by.reason);
  });
}

Status DropAnnounced(Store& store, const TenantId& tenant, std::string_view id) {
  return store.core().Write(Durability::kCommitted, [&](Connection& db) {
    return db.Run("DELETE FROM calls " ONLY_ANNOUNCED " AND tenant = ? AND id = ?", tenant.name(),
                  id);
  });
}

}  // namespace coffer::store
