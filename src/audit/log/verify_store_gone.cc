// SPDX-License-Identifier: Apache-2.0
//
// The part of StoreCheck about results, files and transcripts that are not there: whether
// retention, or a pruning on record, explains it.
#include <fmt/format.h>

#include <algorithm>

#include "audit/log/verify_store.h"
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

}  // namespace coffer::audit
