// SPDX-License-Identifier: Apache-2.0
//
// Recovery: what happens to the calls of a process that died.
//
// Store::Open does it, in one transaction. Not started: ends as refused, class internal, and its
// idempotency key is free again, because nothing happened. Started: `unknown`, its key stays taken
// for good, and it is never run again. Calls of processes that live are not touched. The process
// that opened gets the list, with where the call ran, and cleans up after it (processes, cgroups,
// directories); a call is handed out again by later Opens until FinishCleanup was said for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/call.h"
#include "store/tenant.h"

namespace coffer::store {

struct Core;

struct RecoveredCall {
  Call call;          // as it is now: refused or unknown
  CallState left_in;  // as it was found
};

// How recovery ends a call, and nothing else: what seals it (call/recorder.h) does not believe the row.
inline constexpr const char* kKilledWhileRunning =
    "coffer was killed while the call ran; whether it took effect is unknown";
inline constexpr const char* kKilledBefore =
    "coffer was killed before the call started; nothing ran";

// The same for processes that died since this store was opened: a daemon beside which `coffer call` was killed. For a
// timer; the usual answer, nothing, costs one read.
Result<std::vector<RecoveredCall>> RecoverAgain(Store& store, AllTenants);

// What Store::Open runs; for no other caller.
Result<std::vector<RecoveredCall>> RecoverCalls(Core& core);

// The caller has removed everything the call left. Committed when it returns: cleaning up twice does no harm.
Status FinishCleanup(Store& store, const TenantId& tenant, std::string_view id);

}  // namespace coffer::store
