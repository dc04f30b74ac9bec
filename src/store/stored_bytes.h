// SPDX-License-Identifier: Apache-2.0
//
// How many bytes the store keeps for a tenant (results, transcripts, files, receipts, arguments,
// objects), and which go first when that is too much.
//
// The sum is kept by triggers of the database, so every statement that writes or removes is
// counted. What goes is found here and removed in a second step: between the two the caller seals a
// record of it, so that a verifier knows that what is gone was pruned. The oldest go first:
// results, transcripts and exported files, because they are large and their hashes stay in the
// receipts; whole calls only if that was not enough. What has not ended stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::store {

Result<uint64_t> StoredBytes(Store& store, const TenantId& tenant);

struct OldBodies {
  std::vector<std::string> calls;  // ids, oldest first
  uint64_t bytes = 0;              // of what would be removed
  Nanos through{0};                // the latest end of those calls
};
// The oldest that hold `bytes` together, or as many as are removed at once; none: there are no more.
// Results, transcripts and files of the oldest calls.
Result<OldBodies> FindOldResults(Store& store, const TenantId& tenant, uint64_t bytes);
Result<OldBodies> FindOldCalls(Store& store, const TenantId& tenant, uint64_t bytes);

// Committed when it returns. What is gone already is no error.
Status RemoveResults(Store& store, const TenantId& tenant, const OldBodies& old);
// With their receipts, results and idempotency keys.
Status RemoveCalls(Store& store, const TenantId& tenant, const OldBodies& old);

}  // namespace coffer::store
