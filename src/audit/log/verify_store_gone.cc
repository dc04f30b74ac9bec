// SPDX-License-Identifier: Apache-2.0
//
// The part of StoreCheck about missing rows (results, files, transcripts, manifests, envelopes): whether a pruning that is
// in the log explains each of them.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "audit/log/verify_store.h"
#include "base/text.h"
#include "store/objects.h"

namespace coffer::audit {
namespace {

int64_t LatestOf(const std::string& tenant,
                 std::initializer_list<const std::map<std::string, int64_t>*> events) {
  int64_t until = 0;
  for (const auto* event : events) {
    const auto found = event->find(tenant);
    until = std::max(until, found == event->end() ? 0 : found->second);
  }
  return until;
}

}  // namespace

// Of everything that goes before its call, the log says so first, whether it was too old or there was too much of it.
void StoreCheck::CheckGoneResults() {
  const auto check = [&](std::map<std::string, Missing>& gone, const char* code,
                         fmt::format_string<const std::string&> message) {
    for (auto& [tenant, leaves] : gone) {
      const int64_t until = LatestOf(tenant, {&results_pruned_before_, &results_expired_before_});
      for (; !leaves.empty(); leaves.pop()) {
        if (leaves.top().at >= until) {
          Find(leaves.top().seq, code, fmt::format(message, leaves.top().call));
        }
      }
    }
  };
  check(gone_results_, "store.result",
        "the stored result of call {} is gone, and no pruning is on record that covers it");
  check(gone_files_, "store.file",
        "a file that call {} exported is gone, and no pruning is on record that covers it");
  // What covers the latest transcript covers all.
  for (const auto& [tenant, leaf] : gone_transcripts_) {
    if (leaf.at >= LatestOf(tenant, {&results_pruned_before_, &transcripts_pruned_before_})) {
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
    const int64_t until =
        std::max(LatestOf(fault.tenant, {&pruned_before_}), LatestOf("", {&pruned_before_}));
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
