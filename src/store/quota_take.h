// SPDX-License-Identifier: Apache-2.0
//
// Quotas inside the transaction of an admission or of an end: look at everything first, then take from everything.
//
// Only files of this folder include this header.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "store/admission.h"
#include "store/session.h"
#include "store/sqlite.h"

namespace coffer::store {

class QuotaCheck {
 public:
  QuotaCheck(Connection& db, const AdmitRequest& request, const std::optional<Session>& session,
             Nanos now)
      : db_(db), request_(request), session_(session), now_(now) {}

  // A refusal, or nothing. Writes nothing.
  Result<std::optional<Admission>> Look();
  // After a Look that found nothing, in the same transaction.
  Status Take();
  // Instead of both, for a request that is refused for another reason: looks at rates of the same
  // size that only refusals take from, and takes from them.
  Result<std::optional<Admission>> Charge();
  // Instead of both, for a request whose arguments do not fit: an identical one that has just
  // failed waits, as a call does.
  Result<std::optional<Admission>> ChargeInvalid();

 private:
  struct Gate {
    const char* scope;
    std::string name;
    const policy::RateLimits& limits;
    std::vector<policy::SlidingWindow> windows;
    bool burst_is_last = false;
  };
  Result<std::optional<Admission>> LookAtRetries();
  Result<std::optional<Admission>> LookAtBudgets();
  Result<std::optional<Admission>> LookAtRates();
  Result<std::optional<Admission>> LookAtGates();
  Result<std::optional<Admission>> LookAtConcurrency();
  Status Load(Gate& gate);
  Status TakeRates();

  Connection& db_;
  const AdmitRequest& request_;
  const std::optional<Session>& session_;
  Nanos now_;
  bool is_retry_ = false;
  std::vector<Gate> gates_;
};

// What a call used, once it has ended.
Status AddSpent(Connection& db, const Call& call, Nanos cpu, uint64_t bytes_out);

// For the cooldown of identical retries.
Status NoteFailure(Connection& db, const Call& call, Nanos now);
Status NoteSuccess(Connection& db, const Call& call, Nanos now);

}  // namespace coffer::store
