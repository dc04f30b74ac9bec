// SPDX-License-Identifier: Apache-2.0
//
// Admission: the first rung. Everything that may stop a call before its content is looked at, in one transaction.
//
// In this order: tenant, kill switches, idempotency key, circuit breaker, session, parent, identical retries,
// budgets, rates, calls at the same time. Arguments were checked before (`invalid`): what does not
// fit takes nothing from budgets and rates of calls. The first that says no decides, nothing is
// written, and it is a value, not an Error. If nothing says no, the key is claimed, the counters
// are taken and the call exists as `admitted`, all or nothing, so of any number of processes that
// bring the same key exactly one admits. Committed when it returns, not flushed: after a loss of
// power the call never was, and nothing had happened.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/call.h"
#include "store/call_identity.h"
#include "store/quota.h"

namespace coffer::store {

struct AdmitRequest {
  CallIdentity identity;        // names, ids and hashes are at most 256 bytes
  std::string args_hash;        // what "identical" means for retries
  std::string idempotency_key;  // empty: none; at most 255 bytes
  std::string request_hash;     // of the whole request; same key, other hash: conflict
  Quotas quotas;
  uint32_t max_depth = 3;  // of parents; a call without one has depth 0
  Nanos requested_at{0};   // as its receipt says; 0: now
  bool invalid =
      false;  // its arguments do not fit: recorded and refused, at no cost to the rates of calls
};

enum class AdmitVerdict : uint8_t {
  kAdmitted,
  kReplay,       // the key was used by a call that ended: `result` is its result
  kInFlight,     // the key was used by a call that has not ended
  kKeyConflict,  // the key was used by another request
  kSwitchedOff,
  kPaused,     // by the circuit breaker, for a while
  kNoSession,  // this tenant and agent have no such session
  kSessionEnded,
  kNoParent,  // this tenant has no such call, or it is not running
  kTooDeep,
  kCycle,  // the tool is already one of the callers
  kRetryTooSoon,
  kBudgetSpent,
  kRateLimited,  // a rate, a burst or too many at the same time
};

struct Admission {
  AdmitVerdict verdict = AdmitVerdict::kAdmitted;
  std::string call_id;  // the new one, or the one that used the key
  uint32_t depth = 0;
  CallState state = CallState::kAdmitted;  // of the call that used the key
  std::string result;                      // kReplay
  std::string reason;                      // for the agent: "rate limit of tool python: 10/s"
  std::string error_class;                 // "policy.rate"; empty if admitted or replayed
  Nanos retry_after{0};                    // 0: waiting does not help
  // What Retry-After says: whole seconds, rounded up.
  int64_t RetryAfterSeconds() const;
};

Result<Admission> AdmitCall(Store& store, const AdmitRequest& request);

// kReplay, kInFlight or kKeyConflict if the request's idempotency key was used before; nothing
// otherwise. Takes nothing.
Result<std::optional<Admission>> FindRepetition(Store& store, const AdmitRequest& request);

// For a request that is refused before it comes to the rates: it takes from rates of its tenant and
// agent that are as large as those of calls and apart from them. So an operator's limits bound how
// many refusals are written, and no refusal uses up what calls have. The refusal if nothing is
// left.
Result<std::optional<Admission>> ChargeRefusal(Store& store, const AdmitRequest& request);

// A call that was never admitted, so that its refusal is on record too: it is `refused`, uses no
// budget and claims no key. Ends the row that AnnounceRefusedCall made, or makes one. Committed
// when it returns, not flushed: its receipt is in the log.
Status AddRefusedCall(Store& store, const AdmitRequest& request, std::string_view id,
                      const CallEnd& end);
// The row of such a refusal, written before its receipt is in the log. A process that is killed
// between the log and AddRefusedCall would otherwise leave a record that no longer verifies. The
// row is an open call that counts as no running one and claims no key, and recovery ends it like
// every call of a dead process, with a receipt of its own. Committed, not flushed.
Status AnnounceRefusedCall(Store& store, const AdmitRequest& request, std::string_view id);
// Instead of AddRefusedCall, if the log did not take the receipt.
Status DropAnnounced(Store& store, const TenantId& tenant, std::string_view id);

}  // namespace coffer::store
