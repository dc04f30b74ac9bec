// SPDX-License-Identifier: Apache-2.0
#include "store/call_row.h"

#include "store/rows.h"

namespace coffer::store {
namespace {

constexpr std::string_view kStates[] = {"admitted", "gated",   "recorded", "started",
                                        "finished", "refused", "unknown"};
constexpr std::string_view kOutcomes[] = {"success", "error",      "denied",
                                          "gated",   "terminated", "unknown"};

template <typename Enum, size_t N>
std::optional<Enum> FindIn(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view CallStateName(CallState state) { return kStates[static_cast<size_t>(state)]; }
std::optional<CallState> FindCallState(std::string_view name) {
  return FindIn<CallState>(kStates, name);
}
std::string_view OutcomeName(Outcome outcome) { return kOutcomes[static_cast<size_t>(outcome)]; }
std::optional<Outcome> FindOutcome(std::string_view name) {
  return FindIn<Outcome>(kOutcomes, name);
}

Result<Call> ReadCall(const Statement& row) {
  Call call;
  call.identity.call_id = row.Text(0);
  call.identity.tenant = TenantIdReader::Read(row, 1);
  call.identity.parent_id = row.Text(2);
  call.identity.session_id = row.Text(3);
  call.depth = static_cast<uint32_t>(row.Count(4));
  call.identity.agent = row.Text(5);
  call.identity.user = row.Text(6);
  call.identity.tool = row.Text(7);
  call.tool_version = row.Text(8);
  call.manifest_hash = row.Text(9);
  call.envelope_id = row.Text(10);
  call.effect = row.Text(11);
  call.args_hash = row.Text(12);
  const std::optional<CallState> state = FindCallState(row.Text(13));
  if (!state.has_value()) {
    return HostFault("store.corrupt", "the store holds a call in a state that does not exist",
                     "restore coffer.db from a backup");
  }
  call.state = *state;
  call.outcome = FindOutcome(row.Text(14));
  call.error_class = row.Text(15);
  call.error_message = row.Text(16);
  call.exit_code = row.MaybeInt(17);
  call.exit_signal = row.MaybeInt(18);
  call.requested_at = row.Time(19);
  call.decided_at = row.MaybeTime(20);
  call.started_at = row.MaybeTime(21);
  call.finished_at = row.MaybeTime(22);
  call.cpu = row.Time(23);
  call.bytes_out = row.Count(24);
  if (!row.IsNull(25)) {
    call.supervisor = Supervisor{row.Int(25), row.Count(26), row.Text(27)};
  }
  call.identity.trace_id = row.Text(28);
  call.denials = row.Count(29);
  call.approval = row.Text(30);
  call.identity.reason = row.Text(31);
  if (!row.IsNull(32)) {
    call.log_index = row.Count(32);
  }
  return call;
}

Result<std::optional<Call>> FindCallIn(Connection& db, const TenantId& tenant,
                                       std::string_view id) {
  TRY_ASSIGN(Statement query,
             db.Query("SELECT " CALL_COLUMNS " FROM calls WHERE tenant = ? AND id = ?",
                      tenant.name(), id));
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return std::optional<Call>();
  }
  TRY_ASSIGN(Call call, ReadCall(query));
  return std::optional<Call>(std::move(call));
}

Status PutDocument(Connection& db, const TenantId& tenant, std::string_view id, Document kind,
                   std::string_view body) {
  if (body.empty()) {
    return {};
  }
  if (kind == Document::kResult || kind == Document::kTranscript) {
    return db.Run(kind == Document::kResult
                      ? "INSERT INTO results (tenant, call_id, body) VALUES (?, ?, ?) "
                        "ON CONFLICT DO UPDATE SET body = excluded.body"
                      : "INSERT INTO transcripts (tenant, call_id, body) VALUES (?, ?, ?) "
                        "ON CONFLICT DO UPDATE SET body = excluded.body",
                  tenant.name(), id, body);
  }
  return db.Run(
      "INSERT INTO documents (tenant, call_id, kind, body) VALUES (?, ?, ?, ?) "
      "ON CONFLICT DO UPDATE SET body = excluded.body",
      tenant.name(), id, kind == Document::kArgs ? "args" : "receipt", body);
}

Result<std::optional<std::string>> FindDocument(Connection& db, const TenantId& tenant,
                                                std::string_view id, Document kind) {
  TRY_ASSIGN(
      Statement query,
      kind == Document::kResult
          ? db.Query("SELECT body FROM results WHERE tenant = ? AND call_id = ?", tenant.name(), id)
      : kind == Document::kTranscript
          ? db.Query("SELECT body FROM transcripts WHERE tenant = ? AND call_id = ?", tenant.name(),
                     id)
          : db.Query("SELECT body FROM documents "
                     "WHERE tenant = ? AND call_id = ? AND kind = ?",
                     tenant.name(), id, kind == Document::kArgs ? "args" : "receipt"));
  TRY_ASSIGN(const bool row, query.Step());
  return row ? std::optional<std::string>(query.Text(0)) : std::nullopt;
}

Status ReleaseKey(Connection& db, const TenantId& tenant, std::string_view id) {
  return db.Run(
      "DELETE FROM idempotency WHERE tenant = ?1 AND call_id = ?2 AND key = "
      "(SELECT idempotency_key FROM calls WHERE tenant = ?1 AND id = ?2)",
      tenant.name(), id);
}

}  // namespace coffer::store
