// SPDX-License-Identifier: Apache-2.0
//
// Calls, and the states they go through. The store is the state machine: what is not written here did not happen.
//
//   admitted -> recorded -> started -> finished       refused: from admitted, gated or recorded; nothing ran
//          \-> gated -/           \--> unknown        unknown: it was started, its end was not seen; never run again
//
// A transition is one transaction. One that is not in this picture, or of a call that another
// process owns, is an Error and changes nothing. Record and start are on disk before they return
// unless the caller asks for kCommitted and calls Store::Flush itself before anything runs; ends
// are on disk because they are acknowledged to the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/call_identity.h"
#include "store/page.h"
#include "store/store.h"
#include "store/supervisor.h"
#include "store/tenant.h"

namespace coffer::store {

enum class CallState : uint8_t {
  kAdmitted,
  kGated,
  kRecorded,
  kStarted,
  kFinished,
  kRefused,
  kUnknown,
};
std::string_view CallStateName(CallState state);
std::optional<CallState> FindCallState(std::string_view name);
inline bool HasEnded(CallState state) { return state >= CallState::kFinished; }
bool IsLegal(CallState from, CallState to);

// As in the receipt.
enum class Outcome : uint8_t { kSuccess, kError, kDenied, kGated, kTerminated, kUnknown };
std::string_view OutcomeName(Outcome outcome);
std::optional<Outcome> FindOutcome(std::string_view name);

// What evaluation found out; durable before anything happens.
struct CallDecision {
  std::string tool_version;
  std::string manifest_hash;
  std::string envelope_id;
  std::string effect;
  std::string args_redacted;  // JSON
  // In canonical form, to be found by their hashes later (store/objects.h); empty: nothing new is kept.
  std::string manifest;
  std::string envelope;
};

struct CallEnd {
  Outcome outcome = Outcome::kError;
  std::string error_class;    // empty: no error
  std::string error_message;  // what an agent may see
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::string receipt;     // JSON
  std::string result;      // what a retry with the same idempotency key gets
  std::string transcript;  // what ran and what it printed (call/transcript.h); empty: not kept
  // What it exported (store/call_files.h). The views are used until the function returns.
  struct File {
    std::string_view path;
    std::string_view bytes;
  };
  std::vector<File> files;
  Nanos cpu{0};
  uint64_t bytes_out = 0;
  std::optional<CallDecision> decision;  // of a refused call: as much as was found out
  uint64_t denials = 0;
  std::optional<uint64_t> log_index;  // of its receipt
  Nanos started_at{0};                // as the receipt says; 0: as the store saw it
  Nanos finished_at{0};               // the same
  std::vector<std::string> send_to;   // who is told (store/outbox.h)
};

struct Call {
  CallIdentity identity;
  uint32_t depth = 0;  // 0: no parent
  std::string tool_version;
  std::string manifest_hash;
  std::string envelope_id;
  std::string effect;
  std::string args_hash;
  CallState state = CallState::kAdmitted;
  std::optional<Outcome> outcome;
  std::string error_class;
  std::string error_message;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  Nanos requested_at{0};
  std::optional<Nanos> decided_at;
  std::optional<Nanos> started_at;
  std::optional<Nanos> finished_at;
  Nanos cpu{0};
  uint64_t bytes_out = 0;
  std::optional<Supervisor> supervisor;
  uint64_t denials = 0;
  std::string approval;               // its state; empty: none was needed
  std::optional<uint64_t> log_index;  // of its receipt
};

// admitted -> gated. On disk when it returns.
Status GateCall(Store& store, const TenantId& tenant, std::string_view id,
                const CallDecision& decision);
// admitted or gated -> recorded.
Status RecordCall(Store& store, const TenantId& tenant, std::string_view id,
                  const CallDecision& decision, Durability durability = Durability::kOnDisk);
// recorded -> started.
Status StartCall(Store& store, const TenantId& tenant, std::string_view id,
                 const Supervisor& supervisor, Durability durability = Durability::kOnDisk);
// Both in one transaction, one fsync, for calls that need nothing (a lease) between the two.
Status RecordAndStartCall(Store& store, const TenantId& tenant, std::string_view id,
                          const CallDecision& decision, const Supervisor& supervisor,
                          Durability durability = Durability::kOnDisk);
// started -> finished; outcome success, error, denied or terminated. Adds to the budgets. On disk when it returns.
Status FinishCall(Store& store, const TenantId& tenant, std::string_view id, const CallEnd& end);
// started -> unknown; the outcome is kUnknown whatever `end` says. On disk when it returns.
Status LoseCall(Store& store, const TenantId& tenant, std::string_view id, const CallEnd& end);

enum class KeyFate : uint8_t {
  kKeep,     // a retry with the same idempotency key gets this refusal again
  kRelease,  // it may try again: nothing was decided about the request itself
};
// admitted, gated or recorded -> refused; outcome denied or error. On disk when it returns.
Status RefuseCall(Store& store, const TenantId& tenant, std::string_view id, const CallEnd& end,
                  KeyFate key_fate = KeyFate::kKeep);

// How a call ended by the receipt that recovery gave it, which knows the log. The row has what recovery wrote without it.
struct SettledEnd {
  CallState state = CallState::kUnknown;  // or kRefused: then the row keeps no start and no reason
  Outcome outcome = Outcome::kUnknown;
  std::string error_class;
  std::string error_message;
  Nanos finished_at{0};
};
// A receipt for a call that ended without one (recovery). Refused if there is one.
Status AddReceipt(Store& store, const TenantId& tenant, std::string_view id,
                  std::string_view receipt, std::optional<uint64_t> log_index = {},
                  const std::optional<SettledEnd>& end = {});

// Nothing if this tenant has no such call.
Result<std::optional<Call>> FindCall(Store& store, const TenantId& tenant, std::string_view id);
// JSON, as given; nothing if there is none (yet, or any more).
Result<std::optional<std::string>> FindReceipt(Store& store, const TenantId& tenant,
                                               std::string_view id);
Result<std::optional<std::string>> FindArgs(Store& store, const TenantId& tenant,
                                            std::string_view id);

}  // namespace coffer::store
