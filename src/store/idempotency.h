// SPDX-License-Identifier: Apache-2.0
//
// Idempotency keys inside the transaction of an admission: the call that has used this key, and its request.
//
// A key belongs to its tenant for kIdempotencyTime after it was claimed, and longer while its call has not ended. The
// state it is in is that of its call, so the two cannot disagree. Only files of this folder include this header.
#pragma once

#include <optional>

#include "store/admission.h"
#include "store/sqlite.h"

namespace coffer::store {

// kReplay, kInFlight or kKeyConflict; nothing if the key is free (or there is none).
Result<std::optional<Admission>> LookAtKey(Connection& db, const AdmitRequest& request, Nanos now);

// After LookAtKey found nothing, in the same transaction.
Status ClaimKey(Connection& db, const AdmitRequest& request, const std::string& call_id, Nanos now);

}  // namespace coffer::store
