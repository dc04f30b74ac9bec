// SPDX-License-Identifier: Apache-2.0
//
// Forgetting: what is older than its time is removed, a few hundred rows per transaction so that no call waits for it.
//
// Only what has ended goes; a call that waits for its cleanup stays. Removed rows are overwritten (secure_delete), but
// copies of them may stay in the file system and in backups.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/result.h"
#include "store/tenant.h"

namespace coffer::store {

// The time a key is kept; a shorter one than the retry of a client would run a call twice.
inline constexpr Nanos kIdempotencyTime = std::chrono::hours(24);

struct Retention {
  Nanos calls = std::chrono::hours(24 * 90);     // with their receipts; at least kIdempotencyTime
  Nanos results = std::chrono::hours(24);        // what retries get; at least kIdempotencyTime
  Nanos sessions = std::chrono::hours(24 * 90);  // after they ended
  Nanos keys = std::chrono::hours(24 * 365);     // after they expired or were revoked
  Nanos transcripts =
      std::chrono::hours(24 * 30);  // what calls ran and printed; at least kIdempotencyTime
};

struct Pruned {
  uint64_t calls = 0;
  uint64_t results = 0;
  uint64_t idempotency_keys = 0;
  uint64_t sessions = 0;
  uint64_t api_keys = 0;
  uint64_t counters = 0;
  uint64_t transcripts = 0;
};

// The time before which transcripts go: with their calls at the latest.
Nanos TranscriptsKeptSince(const Retention& retention, Nanos now);
// Whether the tenant has transcripts of calls that ended before `before`.
Result<bool> HasTranscriptsBefore(Store& store, const TenantId& tenant, Nanos before);
// The time before which results go, and exported files with them.
Nanos ResultsKeptSince(const Retention& retention, Nanos now);
// Whether the tenant has results or files of calls that ended before `before`. One that an idempotency key still keeps
// counts too: that key is as old, and Prune removes it first.
Result<bool> HasResultsBefore(Store& store, const TenantId& tenant, Nanos before);

// For a timer. Removes at most a few thousand rows of each kind and can be called again; all zero: nothing left to do.
Result<Pruned> Prune(Store& store, AllTenants, const Retention& retention);
Result<Pruned> Prune(Store& store, const TenantId& tenant, const Retention& retention);
// As of `now`: for a caller that has said in the log what goes.
Result<Pruned> Prune(Store& store, const TenantId& tenant, const Retention& retention, Nanos now);

}  // namespace coffer::store
