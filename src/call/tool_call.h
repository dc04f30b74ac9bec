// SPDX-License-Identifier: Apache-2.0
//
// A call of a declared tool: the request, the identity of the caller, and the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/receipt.h"
#include "base/clock.h"
#include "base/json.h"
#include "store/call_identity.h"

namespace coffer::call {

struct OuterCall;

struct ToolRequest {
  store::CallIdentity
      identity;             // tenant, agent and user come from the channel, never from the request
  std::string key_id;       // of the key that asked, in the daemon: revoking it ends the call
  std::string role_denied;  // the role of a caller who may not call tools; empty: the caller may
  std::string args_json = "{}";
  std::string idempotency_key;   // empty: none
  bool dry_run = false;          // everything up to the decision, and nothing after it
  bool background = false;       // a process of the session, not a call that is waited for
  std::vector<uint16_t> ports;   // on which the session's later calls reach it
  bool without_network = false;  // less than the manifest gives: none
  std::string limits_json;       // smaller limits than the manifest's; empty: those of the manifest
  // Of a call that its parent makes through the socket of its tools (outer_call.h); null: it came from outside.
  std::shared_ptr<const OuterCall> outer;
};

// "00-<trace id>-<parent id>-<flags>" as the identity's trace; anything else is no trace.
void TakeTrace(std::string_view traceparent, store::CallIdentity& identity);

// For a protocol whose requests have ids and no idempotency keys (MCP): the id of a request within
// its session is its key. Without a session an id says nothing, and there is no key. What the
// client sent as a key goes first.
void UseRequestId(std::string_view request_id, ToolRequest& request);

// The error class for a call whose stored data differs from its seal.
inline constexpr const char* kRecordBroken = "record.broken";
// The error class for a call that could not be recorded, because the store or the log is damaged, full or missing.
inline constexpr const char* kRecordUnavailable = "record.unavailable";

// The reason why a request does not become a call, or its call is no longer there. It does not depend on the protocol.
enum class ToolRefusal : uint8_t {
  kNone,
  kInvalid,        // not JSON, not an object
  kNotFound,       // no such tool, session or parent for this tenant
  kDenied,         // known, and not allowed
  kInFlight,       // the same idempotency key is being worked on
  kKeyConflict,    // the idempotency key was used for another request
  kUnprocessable,  // arguments that do not fit
  kRateLimited,    // with retry_after
  kFailed,         // Cofferdam or the host failed
};

struct ToolReply {
  std::string call_id;    // empty: there is no record of it
  bool admitted = false;  // false: refused before anything about it was decided
  std::string outcome;    // as in the receipt
  ToolRefusal refusal = ToolRefusal::kNone;
  std::string error_class;  // empty: no error
  std::string error_message;
  std::string hint;
  // The whole sentences, for the operator: those above name no path of the host (agent_words.h). Neither stored nor sent.
  // Empty: they are the same.
  std::string operator_message;
  std::string operator_hint;
  std::optional<int64_t> retry_after_seconds;
  bool replayed = false;  // the stored answer of an earlier request with the same key

  std::string stdout_text;
  std::string stderr_text;
  bool truncated = false;  // the call wrote more than its limit of output let through
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::vector<audit::Denial> denials;
  std::string receipt;     // JSON, sealed; empty: there is none
  std::string transcript;  // for the record (call/transcript.h); empty: none is kept
  // For the record: the bytes of the receipt's files.exported, in its order.
  std::vector<std::string> exports;
  std::optional<audit::LogPosition> log;  // of the receipt
};

// {"index", "size", "root"}, or null: in every result, and in every refusal that has a receipt.
Json LogJson(const std::optional<audit::LogPosition>& log);
// What is kept for a retry with the same key, and back. The receipt has the hash of this text, so
// it is without the place in the log, which is known only when the receipt is in it.
std::string FormatReply(const ToolReply& reply);
Result<ToolReply> ParseReply(std::string_view text);

// What the receipt says of the end, for the caller.
void TakeOutcome(const audit::Receipt& receipt, ToolReply& reply);

}  // namespace coffer::call
