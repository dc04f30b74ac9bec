// SPDX-License-Identifier: Apache-2.0
#include "audit/log/verify_store.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "audit/canonical_fields.h"
#include "audit/log/body_match.h"
#include "audit/log/call_records.h"
#include "audit/sealed_call.h"
#include "base/json.h"
#include "base/text.h"
#include "store/consistency.h"

namespace coffer::audit {
namespace {

constexpr uint32_t kPage = 500;  // rows read at once
constexpr size_t kBatch = 500;   // calls compared by a helper
constexpr size_t kBatchBytes = 8 << 20;
constexpr size_t kMostMissing = 1000;  // of a tenant
constexpr size_t kMostFindings = 1000;
constexpr uint32_t kMostUnlogged = 1000;
// What is in the log and not in the store is about to be: for as long as a store may be busy (store::StoreOptions).
constexpr Nanos kMoment = std::chrono::seconds(10);
constexpr int kLooks = 10;
constexpr timespec kBetweenLooks{0, 100'000'000};

size_t SizeOf(const store::StoredCall& row) {
  size_t bytes = 0;
  for (const auto* part : {&row.receipt, &row.result, &row.args, &row.transcript}) {
    bytes += *part ? (*part)->size() : 0;
  }
  return bytes;
}

}  // namespace

struct StoreCheck::Work {
  struct Pair {
    store::StoredCall row;
    Leaf leaf;
    bool same = false;
    Differences differences;
    std::string contradictions;
    std::string canonical;  // of a receipt that is compared with earlier records later
  };
  std::vector<Pair> pairs;
  size_t bytes = 0;
  std::atomic<size_t> next = 0;

  void Run() {
    for (size_t i = next++; i < pairs.size(); i = next++) {
      Pair& pair = pairs[i];
      const std::optional<std::string> canonical =
          MatchBody(pair.row.receipt.value_or(""), pair.leaf.body);
      pair.same = canonical.has_value();
      if (canonical) {
        pair.differences = FindDifferences(pair.row, *canonical, pair.leaf.ran, pair.leaf.seq);
        if (pair.leaf.again) {
          pair.canonical = *canonical;
        } else if (pair.leaf.recovered) {
          pair.contradictions = Contradictions({pair.leaf.decision, ""}, *canonical, pair.leaf.ran);
        }
      }
    }
  }
};

StoreCheck::StoreCheck(store::Store& store, std::string directory)
    : store_(store),
      directory_(std::move(directory)),
      began_(store.Now()),
      filling_(std::make_unique<Work>()) {}

StoreCheck::~StoreCheck() {
  if (helper_.joinable()) {
    helper_.join();
  }
}

void StoreCheck::Find(std::optional<uint64_t> seq, std::string code, std::string message) {
  if (findings_.size() >= kMostFindings) {
    more_findings_ = true;
    return;
  }
  findings_.push_back({0, seq, std::move(code), std::move(message)});
}

void StoreCheck::Unlogged(const store::Call& call) {
  NotSealed(KeyOf(call.identity.tenant.name(), call.identity.call_id));
  Find(std::nullopt, "store.unlogged",
       fmt::format("call {} has ended in the store and is not in the log: it was made up or "
                   "edited, or it is of another log",
                   Printable(call.identity.call_id)));
}

// Null: there is none, or it cannot be read.
const store::StoredCall* StoreCheck::NextRow() {
  if (next_ == page_.size() && !rows_end_ && !error_) {
    Result<std::vector<store::StoredCall>> page =
        store::ListByRecord(store_, store::AllTenants{}, place_, kPage);
    page_.clear();
    next_ = 0;
    if (page.ok()) {
      page_ = std::move(page).value();
      rows_end_ = page_.empty();
    } else {
      error_ = page.error();
    }
  }
  return next_ < page_.size() ? &page_[next_] : nullptr;
}

void StoreCheck::Note(const LeafFacts& facts) {
  switch (facts.kind) {
    case LeafFacts::Kind::kDecision:
      decided_[KeyOf(facts.tenant, facts.call)] = facts.line;
      break;
    case LeafFacts::Kind::kReceipt:
      NoteReceipt(facts);
      break;
    case LeafFacts::Kind::kEvent:
      NoteEvent(facts);
      break;
  }
}

// Only these events cover what is gone: the log had them before it was.
void StoreCheck::NoteEvent(const LeafFacts& facts) {
  std::map<std::string, int64_t>* const all =
      facts.name == "pruned"               ? &pruned_before_
      : facts.name == "results.pruned"     ? &results_pruned_before_
      : facts.name == "results.expired"    ? &results_expired_before_
      : facts.name == "transcripts.pruned" ? &transcripts_pruned_before_
                                           : nullptr;
  if (all == nullptr) {
    return;
  }
  const Result<Json> detail = ParseJson(facts.detail);
  if (!detail.ok() || !detail->is_object()) {
    return;
  }
  const Json before = detail->value("before", Json(0));
  int64_t& until = (*all)[std::string(facts.tenant)];
  until = std::max(until, before.is_number_integer() ? before.get<int64_t>() : 0);
}

void StoreCheck::NoteReceipt(const LeafFacts& facts) {
  Leaf leaf;
  leaf.seq = facts.seq;
  leaf.at = facts.at;
  leaf.tenant = facts.tenant;
  leaf.call = facts.call;
  leaf.body = facts.body;
  leaf.ran = facts.ran;
  leaf.recovered = facts.recovered;
  leaf.again = facts.recovered && facts.ended_before;
  const auto decided = decided_.find(KeyOf(facts.tenant, facts.call));
  if (decided != decided_.end()) {
    if (facts.recovered) {
      leaf.decision = std::move(decided->second);
    }
    decided_.erase(decided);
  }
  bool found = false;
  const auto seq = static_cast<int64_t>(facts.seq);
  for (const store::StoredCall* row = NextRow(); row != nullptr && row->log_index <= seq;
       row = NextRow()) {
    if (!found && row->log_index == seq && row->call.identity.tenant.name() == leaf.tenant &&
        row->call.identity.call_id == leaf.call) {
      found = true;
      Compare(std::move(page_[next_]), leaf);
    } else {
      Unlogged(row->call);
    }
    ++next_;
  }
  if (!found) {
    KeepLatest(missing_, std::move(leaf));
  }
}

void StoreCheck::KeepLatest(std::map<std::string, Missing>& gone, Leaf leaf) {
  Missing& of_tenant = gone[leaf.tenant];
  of_tenant.push(std::move(leaf));
  if (of_tenant.size() > kMostMissing) {
    of_tenant.pop();
  }
}

void StoreCheck::Compare(store::StoredCall row, Leaf leaf) {
  filling_->bytes += SizeOf(row);
  filling_->pairs.push_back({std::move(row), std::move(leaf), false, {}, {}, {}});
  if (filling_->pairs.size() >= kBatch || filling_->bytes >= kBatchBytes) {
    HandOver();
  }
}

// One batch is compared by another thread while the next one is read.
void StoreCheck::HandOver() {
  Collect();
  compared_now_ = std::exchange(filling_, std::make_unique<Work>());
  helper_ = std::thread([work = compared_now_.get()] { work->Run(); });
}

void StoreCheck::Collect() {
  if (compared_now_ == nullptr) {
    return;
  }
  compared_now_->Run();
  helper_.join();
  for (const Work::Pair& pair : compared_now_->pairs) {
    const std::string& id = pair.leaf.call;
    ++compared_;
    if (!pair.same) {
      Find(pair.leaf.seq, "store.receipt",
           pair.row.receipt
               ? fmt::format("the stored receipt of call {} is not the one that was logged", id)
               : fmt::format("the receipt of call {} is gone from the store", id));
      continue;
    }
    if (!pair.differences.columns.empty()) {
      NotSealed(KeyOf(pair.leaf.tenant, id));
      Find(pair.leaf.seq, "store.row",
           fmt::format("the row of call {} differs from its seal: {}", id,
                       NamesOf(pair.differences)));
    }
    if (pair.differences.result) {
      Find(pair.leaf.seq, "store.result",
           fmt::format("the stored result of call {} is not the one that was sealed", id));
    }
    if (pair.differences.result_gone) {
      KeepLatest(gone_results_, pair.leaf);
    }
    if (!pair.differences.file.empty()) {
      Find(pair.leaf.seq, "store.file",
           fmt::format("the stored file {} of call {} is not one that was sealed",
                       Printable(pair.differences.file), id));
    }
    if (pair.differences.file_gone) {
      KeepLatest(gone_files_, pair.leaf);
    }
    if (pair.differences.transcript) {
      Find(pair.leaf.seq, "store.transcript",
           fmt::format("the stored transcript of call {} is not the one that was sealed", id));
    }
    if (pair.differences.transcript_gone) {
      Leaf& latest = gone_transcripts_[pair.leaf.tenant];
      latest = pair.leaf.at >= latest.at ? pair.leaf : latest;
    }
    if (pair.leaf.again) {
      again_.push_back({pair.leaf, pair.canonical});
    } else if (pair.leaf.recovered) {
      NoteRecovered(pair.leaf, pair.contradictions);
    }
  }
  compared_now_.reset();
}

// Rows whose place is behind the end of the log when it was read. These rows are read before the rest
// of the log, so the rest has a record for each honest one.
Status StoreCheck::CheckNewRows(uint64_t bytes) {
  constexpr size_t kMost = 10'000;
  std::map<std::string, store::StoredCall> rows;
  for (const store::StoredCall* row = NextRow(); row != nullptr; row = NextRow()) {
    if (rows.size() < kMost) {
      rows.emplace(KeyOf(row->call.identity.tenant.name(), row->call.identity.call_id),
                   std::move(page_[next_]));
    }  // beyond that: the next verification
    ++next_;
  }
  if (error_) {
    return *error_;
  }
  TRY(ReadNewRecords(directory_, bytes, [&](const LeafFacts& facts) {
    const std::string key = KeyOf(facts.tenant, facts.call);
    if (facts.kind == LeafFacts::Kind::kDecision) {
      decided_[key] = facts.line;
      return;
    }
    if (facts.kind == LeafFacts::Kind::kEvent) {
      NoteEvent(facts);
      return;
    }
    const auto found = rows.find(key);
    if (facts.kind != LeafFacts::Kind::kReceipt || found == rows.end() ||
        found->second.log_index != static_cast<int64_t>(facts.seq)) {
      return;
    }
    Leaf leaf{facts.seq,
              facts.at,
              std::string(facts.tenant),
              std::string(facts.call),
              std::string(facts.body),
              facts.ran,
              facts.recovered,
              /*again=*/facts.recovered,  // perhaps
              ""};
    Compare(std::move(found->second), std::move(leaf));
    rows.erase(found);
  }));
  for (const auto& [key, row] : rows) {
    Unlogged(row.call);
  }
  return {};
}

// A running call has its decision in the log, and its row matches that decision.
Status StoreCheck::CheckOpenCalls(const std::vector<store::Call>& open) {
  for (const store::Call& call : open) {
    if (call.state != store::CallState::kStarted && call.state != store::CallState::kRecorded) {
      continue;
    }
    const auto decided = decided_.find(KeyOf(call.identity.tenant.name(), call.identity.call_id));
    if (ended_in_log_.contains(KeyOf(call.identity.tenant.name(), call.identity.call_id))) {
      continue;  // it was decided, and it was found already
    }
    if (decided == decided_.end()) {
      // Or its end is in the log, and about to be in the store.
      bool runs = true;
      for (int look = 0; runs && look < kLooks; ++look) {
        TRY_ASSIGN(const std::optional<store::Call> now,
                   store::FindCall(store_, call.identity.tenant, call.identity.call_id));
        runs = now && !store::HasEnded(now->state);
        if (runs) {
          ::nanosleep(&kBetweenLooks, nullptr);
        }
      }
      if (runs) {
        Find(std::nullopt, "store.undecided",
             fmt::format("call {} runs in the store, and the log has no decision of it",
                         Printable(call.identity.call_id)));
      }
      continue;
    }
    const CanonicalFields said(decided->second);
    if (!Says(said.At("agent"), call.identity.agent) ||
        !Says(said.At("user"), call.identity.user) || !Says(said.At("tool"), call.identity.tool) ||
        !Says(said.At("session"), call.identity.session_id) ||
        !Says(said.At("parent"), call.identity.parent_id) ||
        !Says(said.At("tool_version"), call.tool_version) ||
        !Says(said.At("manifest"), call.manifest_hash) ||
        !Says(said.At("envelope"), call.envelope_id) || !Says(said.At("effect"), call.effect) ||
        !Says(said.At("trace"), call.identity.trace_id)) {
      Find(std::nullopt, "store.row",
           fmt::format("the row of call {}, which runs, differs from the decision in the log",
                       Printable(call.identity.call_id)));
    }
  }
  return {};
}

// Records without a row that no pruning covers. A record that another one of the same call replaced
// (recovered after a crash) has none of its own; that the later one is in the log was checked when
// it was read.
Status StoreCheck::CheckMissing() {
  std::vector<Leaf> uncovered;
  std::set<std::string> unfinished;  // their rows are there, and still run
  for (auto& [tenant, missing] : missing_) {
    const auto own = pruned_before_.find(tenant);
    const auto all = pruned_before_.find("");
    const int64_t until = std::max(own == pruned_before_.end() ? 0 : own->second,
                                   all == pruned_before_.end() ? 0 : all->second);
    for (; !missing.empty(); missing.pop()) {
      if (missing.top().at >= until) {
        uncovered.push_back(missing.top());
      }
    }
  }
  for (int look = 0; !uncovered.empty(); ++look) {
    std::vector<Leaf> still;
    bool young = false;
    for (const Leaf& leaf : uncovered) {
      const Result<store::TenantId> tenant = store::TenantId::Parse(leaf.tenant);
      std::optional<store::Call> row;
      if (tenant.ok()) {
        TRY_ASSIGN(row, store::FindCall(store_, *tenant, leaf.call));
      }
      bool there = row && row->log_index && *row->log_index >= leaf.seq;
      if (row && !there && leaf.recovered) {  // two processes may have recovered it
        TRY_ASSIGN(const std::optional<std::string> receipt,
                   store::FindReceipt(store_, *tenant, leaf.call));
        there = MatchBody(receipt.value_or(""), leaf.body).has_value();
      }
      if (row && !there && !store::HasEnded(row->state)) {
        unfinished.insert(KeyOf(leaf.tenant, leaf.call));
      }
      if (!there) {
        young = young || Nanos(leaf.at) > began_ - kMoment;
        still.push_back(leaf);
      }
    }
    uncovered = std::move(still);
    if (look >= kLooks || !young) {
      break;
    }
    ::nanosleep(&kBetweenLooks, nullptr);
  }
  for (const Leaf& leaf : uncovered) {
    if (unfinished.contains(KeyOf(leaf.tenant, leaf.call))) {
      ended_in_log_.insert(KeyOf(leaf.tenant, leaf.call));
      Find(leaf.seq, "store.behind",
           fmt::format("call {} has ended in the log and still runs in the store: its end could "
                       "not be written yet (is the disk full?), or its row was changed back",
                       leaf.call));
      continue;
    }
    Find(leaf.seq, "store.gone",
         fmt::format("call {} is in the log and not in the store, and no pruning covers it",
                     leaf.call));
  }
  return {};
}

Status StoreCheck::Finish(LogVerdict& verdict) {
  // Before the rest of the log is read: what runs by now was decided in it.
  TRY_ASSIGN(const std::vector<store::Call> open, store::OpenCalls(store_, store::AllTenants{}));
  TRY(CheckNewRows(verdict.bytes));
  HandOver();
  Collect();
  TRY(CheckAgain());
  CheckGoneResults();
  TRY(CheckMissing());
  TRY(CheckOpenCalls(open));
  TRY(CheckObjects());
  // Calls of a process that died get their receipts a moment after they are ended.
  std::vector<store::Call> unlogged;
  for (int look = 0; look < kLooks; ++look) {
    TRY_ASSIGN(unlogged, store::ListUnlogged(store_, store::AllTenants{}, kMostUnlogged));
    if (unlogged.empty()) {
      break;
    }
    ::nanosleep(&kBetweenLooks, nullptr);
  }
  for (const store::Call& call : unlogged) {
    Unlogged(call);
  }
  TRY_ASSIGN(std::vector<store::Inconsistency> inconsistent,
             store::FindInconsistencies(store_, store::AllTenants{}));
  for (store::Inconsistency& found : inconsistent) {
    Find(std::nullopt, std::move(found.code), std::move(found.message));
  }
  for (LogFinding& finding : findings_) {
    verdict.findings.push_back(std::move(finding));
  }
  verdict.notes = std::move(notes_);
  verdict.more_findings = verdict.more_findings || more_findings_;
  return {};
}

}  // namespace coffer::audit
