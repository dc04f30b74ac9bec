// SPDX-License-Identifier: Apache-2.0
//
// What a recorder removes from the store, each time with a record of what is gone.
#include <algorithm>

#include "call/recorder.h"
#include "store/call_list.h"
#include "store/stored_bytes.h"

namespace coffer::call {

Result<store::Pruned> Recorder::Prune(const store::TenantId& tenant,
                                      const store::Retention& retention) {
  const Nanos before = store_.Now() - std::max(retention.calls, store::kIdempotencyTime);
  store::CallFilter old;
  old.until = before;
  TRY_ASSIGN(const store::Page<store::Call> oldest, store::ListCalls(store_, tenant, old, {1, ""}));
  if (!oldest.rows.empty()) {
    audit::EventRecord event;
    event.tenant = tenant.name();
    event.name = "pruned";
    event.detail.emplace_back("before", before.count());
    TRY(events_.Say(event));
  }
  const Nanos kept_since = store::TranscriptsKeptSince(retention, store_.Now());
  TRY_ASSIGN(const bool transcripts, store::HasTranscriptsBefore(store_, tenant, kept_since));
  if (transcripts) {
    audit::EventRecord event;
    event.tenant = tenant.name();
    event.name = "transcripts.pruned";
    event.detail.emplace_back("before", kept_since.count());
    TRY(events_.Say(event));
  }
  return store::Prune(store_, tenant, retention);
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
