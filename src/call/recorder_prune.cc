// SPDX-License-Identifier: Apache-2.0
//
// What a recorder removes from the store, each time with a record of what is gone.
#include <algorithm>

#include "call/recorder.h"
#include "store/call_list.h"
#include "store/stored_bytes.h"

namespace coffer::call {

Status Recorder::SayPruned(const store::TenantId& tenant, std::string_view name, Nanos before) {
  audit::EventRecord event;
  event.tenant = tenant.name();
  event.name = name;
  event.detail.emplace_back("before", before.count());
  return events_.Say(event);
}

Result<bool> Recorder::HasCallsBefore(const store::TenantId& tenant, Nanos before) {
  store::CallFilter old;
  old.until = before;
  TRY_ASSIGN(const store::Page<store::Call> oldest, store::ListCalls(store_, tenant, old, {1, ""}));
  return !oldest.rows.empty();
}

// Not `results.pruned`: that covers transcripts too, which stay longer than results do.
Status Recorder::SayExpiredResults(const store::TenantId& tenant, Nanos before) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = !said_results_.contains(tenant.name());
  }
  // Earlier versions removed results and files by age without a word. So the first pruning of a process says so for
  // each tenant whose calls are old enough, also if nothing of them is left to remove.
  TRY_ASSIGN(const bool needed, first ? HasCallsBefore(tenant, before)
                                      : store::HasResultsBefore(store_, tenant, before));
  if (needed) {
    TRY(SayPruned(tenant, "results.expired", before));
  }
  const std::lock_guard lock(mutex_);
  said_results_.insert(tenant.name());
  return {};
}

Result<store::Pruned> Recorder::Prune(const store::TenantId& tenant,
                                      const store::Retention& retention) {
  const Nanos now = store_.Now();  // one for all: nothing goes that no event covers
  const Nanos calls = now - std::max(retention.calls, store::kIdempotencyTime);
  TRY_ASSIGN(const bool loses_calls, HasCallsBefore(tenant, calls));
  if (loses_calls) {
    TRY(SayPruned(tenant, "pruned", calls));
  }
  TRY(SayExpiredResults(tenant, store::ResultsKeptSince(retention, now)));
  const Nanos transcripts = store::TranscriptsKeptSince(retention, now);
  TRY_ASSIGN(const bool loses_transcripts,
             store::HasTranscriptsBefore(store_, tenant, transcripts));
  if (loses_transcripts) {
    TRY(SayPruned(tenant, "transcripts.pruned", transcripts));
  }
  return store::Prune(store_, tenant, retention, now);
}

Result<uint64_t> Recorder::PruneToSize(const store::TenantId& tenant, uint64_t bytes) {
  TRY_ASSIGN(const uint64_t stored, store::StoredBytes(store_, tenant));
  if (stored <= bytes) {
    return uint64_t{0};
  }
  // A little more than needed, so that not every call is followed by a record of its own; and
  // little enough that others, who wait for the store meanwhile, do not notice.
  constexpr uint64_t kMostAtOnce = uint64_t{16} << 20;
  const uint64_t excess = std::min(stored - bytes + bytes / 16, kMostAtOnce);
  TRY_ASSIGN(store::OldBodies old, store::FindOldResults(store_, tenant, excess));
  const bool results = !old.calls.empty();
  if (!results) {
    TRY_ASSIGN(old, store::FindOldCalls(store_, tenant, excess));
  }
  if (old.calls.empty()) {
    return uint64_t{0};
  }
  audit::EventRecord event;
  event.tenant = tenant.name();
  event.name = results ? "results.pruned" : "pruned";
  event.detail = {{"before", old.through.count() + 1},
                  {"count", static_cast<int64_t>(old.calls.size())},
                  {"bytes", static_cast<int64_t>(old.bytes)},
                  {"limit", static_cast<int64_t>(bytes)},
                  {"first", old.calls.front()},
                  {"last", old.calls.back()}};
  TRY(events_.Say(event));
  TRY(results ? store::RemoveResults(store_, tenant, old)
              : store::RemoveCalls(store_, tenant, old));
  return static_cast<uint64_t>(old.calls.size());
}

}  // namespace coffer::call
