// SPDX-License-Identifier: Apache-2.0
//
// Lists of calls: by tenant, newest first, in pages; and the chain of a call's parents.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/call.h"
#include "store/call_files.h"
#include "store/page.h"
#include "store/tenant.h"

namespace coffer::store {

// Empty fields do not filter.
struct CallFilter {
  std::string session_id;
  std::string agent;
  std::string tool;
  std::string error_class;
  std::optional<CallState> state;
  std::optional<Outcome> outcome;
  std::optional<Nanos> since;  // requested at or after
  std::optional<Nanos> until;  // requested before
  std::string trace_id;
  std::string approval;  // its state
  bool denied = false;   // only calls that were refused
  bool probed = false;   // only calls whose program tried something that was refused
};

Result<Page<Call>> ListCalls(Store& store, const TenantId& tenant, const CallFilter& filter,
                             const PageRequest& page);
Result<Page<Call>> ListCalls(Store& store, AllTenants, const CallFilter& filter,
                             const PageRequest& page);

// A call, whosever it is.
Result<std::optional<Call>> FindCall(Store& store, AllTenants, std::string_view id);

// The calls that this one made, oldest first; at most 1000.
Result<std::vector<Call>> ChildCalls(Store& store, const TenantId& tenant, std::string_view id);

// All calls that have not ended, of all processes. Their number is bounded by the concurrency limits.
Result<std::vector<Call>> OpenCalls(Store& store, const TenantId& tenant);
Result<std::vector<Call>> OpenCalls(Store& store, AllTenants);

// A call with everything the store keeps of it: what a verifier wants to compare.
struct StoredCall {
  Call call;
  int64_t log_index = -1;              // as it stands in the row; -1: none
  std::optional<std::string> receipt;  // nothing: none yet, or none any more
  std::optional<std::string> result;
  std::optional<std::string> args;
  std::optional<std::string> transcript;
  // What it exported, hashed as it is stored; nothing: not looked at.
  std::optional<std::vector<StoredFile>> files;
};
// Without the files.
Result<StoredCall> ReadStored(Store& store, const Call& call);

// Where a list of ended calls by the place of their receipts in the log goes on.
struct RecordPlace {
  int64_t log_index = INT64_MIN;
  std::string tenant;
  std::string id;
};
// Ended calls behind `after`, in the order of their receipts in the log; `after` moves on. At most
// `limit`, and fewer once they are large together; none: that was all.
Result<std::vector<StoredCall>> ListByRecord(Store& store, AllTenants, RecordPlace& after,
                                             uint32_t limit);
// Ended calls that have no place in the log; at most `limit`.
Result<std::vector<Call>> ListUnlogged(Store& store, AllTenants, uint32_t limit);

}  // namespace coffer::store
