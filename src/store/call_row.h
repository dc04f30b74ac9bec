// SPDX-License-Identifier: Apache-2.0
//
// A call's row, read and changed inside the caller's transaction. Only files of this folder include this header.
#pragma once

#include <string_view>

#include "store/call.h"
#include "store/core.h"
#include "store/sqlite.h"

namespace coffer::store {

// For a SELECT that ReadCall reads.
#define CALL_COLUMNS                                                                           \
  "id, tenant, parent_id, session_id, depth, agent, user, tool, tool_version, manifest_hash, " \
  "envelope_id, effect, args_hash, state, outcome, error_class, error_message, exit_code, "    \
  "exit_signal, requested_at, decided_at, started_at, finished_at, cpu, bytes_out, "           \
  "supervisor_pid, supervisor_start, supervisor_boot, trace_id, denials, approval, reason, "   \
  "log_index"
inline constexpr int kCallColumns = 33;

// A row that makes no sense is an Error (store.corrupt), never a guess.
Result<Call> ReadCall(const Statement& row);

Result<std::optional<Call>> FindCallIn(Connection& db, const TenantId& tenant, std::string_view id);

// Kept beside the rows, so that lists stay short. An empty one is none.
enum class Document : uint8_t { kArgs, kReceipt, kResult, kTranscript };
Status PutDocument(Connection& db, const TenantId& tenant, std::string_view id, Document kind,
                   std::string_view body);
Result<std::optional<std::string>> FindDocument(Connection& db, const TenantId& tenant,
                                                std::string_view id, Document kind);

// Frees the idempotency key that the call claimed, if any.
Status ReleaseKey(Connection& db, const TenantId& tenant, std::string_view id);

}  // namespace coffer::store
