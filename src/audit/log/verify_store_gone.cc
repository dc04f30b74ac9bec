// SPDX-License-Identifier: Apache-2.0
//
// The part of StoreCheck about missing rows (results, files, transcripts, manifests, envelopes): whether retention, or a
// pruning that is in the log, explains each of them.
#include <fmt/format.h>

#include <algorithm>

#include "audit/log/verify_store.h"
#include "base/text.h"
#include "store/objects.h"
#include "store/retention.h"

namespace coffer::audit {

// Retention keeps a result for that long at least, counted from the end of the call, and may be at work just now.
bool StoreCheck::IsYoung(const Leaf& leaf) const {
  return Nanos(leaf.at) > store_.Now() - store::kIdempotencyTime + std::chrono::minutes(1);
}

// A tenant that keeps too much loses its oldest results before their time; the log says up to which.
void StoreCheck::CheckGoneResults() {
  const auto covered = [&](const Leaf& leaf) {
    const auto until = results_pruned_before_.find(leaf.tenant);
    return until != results_pruned_before_.end() && leaf.at < until->second;
  };
  for (const Leaf& leaf : gone_results_) {
    if (!covered(leaf)) {
      Find(leaf.seq, "store.result",
           fmt::format("the stored result of call {} is gone, and it is too young to be pruned",
                       leaf.call));
    }
  }
  for (const Leaf& leaf : gone_files_) {
    if (!covered(leaf)) {
      Find(leaf.seq, "store.file",
           fmt::format("a file that call {} exported is gone, and it is too young to be pruned",
                       leaf.call));
    }
  }
  // Of every transcript that goes before its call, the log says so first. What covers the latest covers all.
  for (const auto& [tenant, leaf] : gone_transcripts_) {
    int64_t until = 0;
    for (const auto* all : {&results_pruned_before_, &transcripts_pruned_before_}) {
      const auto found = all->find(tenant);
      until = std::max(until, found == all->end() ? 0 : found->second);
    }
    if (leaf.at >= until) {
      Find(leaf.seq, "store.transcript",
           fmt::format("the transcript of call {} is gone, and no pruning is on record that "
                       "covers it",
                       leaf.call));
    }
  }
}

// What a call was allowed, by the hashes in its row, which were compared with its receipt. An
// object goes with the last call that names it; a call that ran for long may outlive it.
Status StoreCheck::CheckObjects() {
  constexpr uint32_t kMostOfAKind = 1000;
  TRY_ASSIGN(const std::vector<store::ObjectFault> faults,
             store::FindObjectFaults(store_, store::AllTenants{}, kMostOfAKind));
  for (const store::ObjectFault& fault : faults) {
    const std::string hash = Printable(fault.hash);
    if (fault.call.empty()) {
      Find(std::nullopt, "store.object",
           fmt::format("the manifest or envelope {} in the store has another hash", hash));
      continue;
    }
    if (not_sealed_.contains(KeyOf(fault.tenant, fault.call))) {
      continue;  // whatever that row names
    }
    int64_t until = 0;
    for (const std::string& tenant : {fault.tenant, std::string()}) {
      const auto found = pruned_before_.find(tenant);
      until = std::max(until, found == pruned_before_.end() ? 0 : found->second);
    }
    if (fault.decided_at + std::chrono::minutes(1) >= Nanos(until)) {
      Find(std::nullopt, "store.object",
           fmt::format("the manifest or envelope {} of call {} is gone from the store, and no "
                       "pruning covers it",
                       hash, Printable(fault.call)));
    }
  }
  return {};
}

}  // namespace coffer::audit
