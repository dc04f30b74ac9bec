// SPDX-License-Identifier: Apache-2.0
#include "call/ended_receipt.h"

#include <string>
#include <utility>

#include "call/incidents.h"
#include "call/refusals.h"

namespace coffer::call {
namespace {

// The runner saw the wall clock, which an administrator may have set meanwhile. Retention goes by the store's.
void KeepStoreTime(Nanos now, audit::Receipt& receipt) {
  constexpr Nanos kApart = std::chrono::seconds(30);
  const Nanos ahead = receipt.finished_at - now;
  if (receipt.finished_at == Nanos(0) || (ahead < kApart && ahead > -kApart)) {
    return;
  }
  receipt.finished_at -= ahead;
  if (receipt.started_at != Nanos(0)) {
    receipt.started_at -= ahead;
  }
}

// What was bound is told by the runner's own list; the effect only the manifest knows. A call that was refused before
// anything was bound keeps the manifest's sentence.
std::string WorstCase(const audit::Receipt& before, const audit::Receipt& after) {
  if (after.blast_radius.empty()) {
    return before.blast_radius;
  }
  const bool lasting = before.effect == "irreversible" || before.effect == "privileged";
  return after.blast_radius + (lasting ? "; counts as " + before.effect : "");
}

}  // namespace

audit::Receipt EndedReceipt(const audit::Receipt& before, audit::Receipt after, Nanos now) {
  after.identity = before.identity;
  after.tool_version = before.tool_version;
  after.manifest_hash = before.manifest_hash;
  after.envelope_id = before.envelope_id;
  after.effect = before.effect;
  after.blast_radius = WorstCase(before, after);
  after.args_hash = before.args_hash;
  after.args_redacted = before.args_redacted;
  after.requested_at = before.requested_at;
  KeepStoreTime(now, after);
  after.incidents = IncidentsOf(after);
  return after;
}

audit::Receipt LostReceipt(audit::Receipt before, Nanos now) {
  before.outcome = "unknown";
  before.error_class = "internal";
  before.error_message = kEndNotSeen;
  before.finished_at = now;
  before.duration = before.finished_at - before.requested_at;
  return before;
}

}  // namespace coffer::call
