// SPDX-License-Identifier: Apache-2.0
//
// The part of StoreCheck about receipts that recovery wrote for calls whose process had died: they may say nothing
// that the log says otherwise, and a reader is told what no record but them says.
#include <fmt/format.h>

#include "audit/canonical_fields.h"
#include "audit/log/verify_store.h"

namespace coffer::audit {
namespace {

constexpr size_t kMostNotes = 1000;

}  // namespace

void StoreCheck::Tell(const Leaf& leaf, std::string code, std::string message) {
  if (notes_.size() < kMostNotes) {
    notes_.push_back({0, leaf.seq, std::move(code), std::move(message)});
  }
}

void StoreCheck::NoteRecovered(const Leaf& leaf, const std::string& contradictions) {
  if (!contradictions.empty()) {
    Find(leaf.seq, "store.recovered",
         fmt::format("the receipt of call {}, recovered after a crash, differs from what the log "
                     "said of the call before: {}",
                     leaf.call, contradictions));
    return;
  }
  if (leaf.decision.empty()) {
    Tell(leaf, "store.alone",
         fmt::format("call {} was recovered after a crash and has no decision in the log: who "
                     "asked for what is known from the store alone",
                     leaf.call));
  } else if (!leaf.ran) {
    Tell(leaf, "store.alone",
         fmt::format("call {} was recovered after a crash: that it was not started after its "
                     "decision is known from the store alone",
                     leaf.call));
  }
}

// A log is read once more for these, which a crash leaves only between two syncs.
Status StoreCheck::CheckAgain() {
  if (again_.empty()) {
    return {};
  }
  struct Before {
    CallRecords records;
    uint64_t receipt_seq = 0;
  };
  std::unordered_map<std::string, Before> sought;
  for (const Again& again : again_) {
    sought[KeyOf(again.leaf.tenant, again.leaf.call)];
  }
  TRY(ReadNewRecords(directory_, 0, [&](const LeafFacts& facts) {
    if (facts.kind == LeafFacts::Kind::kEvent) {
      return;
    }
    const auto found = sought.find(KeyOf(facts.tenant, facts.call));
    if (found == sought.end()) {
      return;
    }
    CallRecords& records = found->second.records;
    if (facts.kind == LeafFacts::Kind::kDecision && records.decision.empty()) {
      records.decision = facts.line;
    }
    if (facts.kind == LeafFacts::Kind::kReceipt && records.receipt.empty()) {
      records.receipt = facts.line;
      found->second.receipt_seq = facts.seq;
    }
  }));
  for (Again& again : again_) {
    Leaf& leaf = again.leaf;
    const Before& before = sought[KeyOf(leaf.tenant, leaf.call)];
    CallRecords records = before.records;
    if (before.receipt_seq >= leaf.seq) {
      records.receipt.clear();  // it is the first
    }
    leaf.decision = records.decision;
    const std::string contradictions = Contradictions(records, again.canonical, leaf.ran);
    const CanonicalFields first(records.receipt);
    if (!contradictions.empty() || records.receipt.empty() || first.At("recovered") == "true") {
      NoteRecovered(leaf, contradictions);
      continue;
    }
    Tell(
        leaf, "store.lost",
        fmt::format("call {} has ended in the log before (record {}, outcome {}), and that receipt "
                    "did not reach the store, or was removed from it: this one stands for it",
                    leaf.call, before.receipt_seq, first.At("outcome")));
  }
  return {};
}

}  // namespace coffer::audit
