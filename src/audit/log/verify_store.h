// SPDX-License-Identifier: Apache-2.0
//
// The store against the log: every call that the store says has ended is in the log, every row,
// result and receipt is what the log names, and every receipt of the log has its row or was pruned.
//
// The log can be verified with nothing but its files (verify_log.h); this is what can be said beyond that where the
// store is there too. Both are read side by side in the order of the log, so memory is a few pages, however many calls
// there are. No row is trusted: a call is the log's if the record at its place names it, and what is gone is covered
// only by an event `pruned` of the log. The signature inside a stored receipt is checked when a reader asks for that
// receipt (sealed_call.h), not here.
//
// It may run while calls end. The log is written before the store: a row is never older than its record, and a record
// without a row is looked for again before it is a finding.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "audit/log/call_records.h"
#include "audit/log/verify_log.h"
#include "store/call_list.h"
#include "store/store.h"

namespace coffer::audit {

class StoreCheck {
 public:
  // `directory` is the log's. Make it before the log is read.
  StoreCheck(store::Store& store, std::string directory);
  ~StoreCheck();
  StoreCheck(const StoreCheck&) = delete;
  StoreCheck& operator=(const StoreCheck&) = delete;

  // For VerifyOptions::on_record.
  void Note(const LeafFacts& facts);
  // After the log was read; adds to the verdict's findings and notes. An Error: the store could not be read.
  Status Finish(LogVerdict& verdict);

  uint64_t compared() const { return compared_; }  // calls whose row and receipt were compared

 private:
  struct Leaf {  // of a receipt
    uint64_t seq = 0;
    int64_t at = 0;
    std::string tenant, call, body;
    bool ran = false;
    bool recovered = false;
    bool again = false;    // recovered, after an earlier receipt of the call
    std::string decision;  // recovered and not again: the line of the decision, if there was one
  };
  struct Again {
    Leaf leaf;
    std::string canonical;  // of its receipt
  };
  struct LaterFirst {
    bool operator()(const Leaf& a, const Leaf& b) const { return a.at > b.at; }
  };
  // The latest of a tenant's records without a row (a result, a file); what is older than them was pruned or is as many
  // findings again.
  using Missing = std::priority_queue<Leaf, std::vector<Leaf>, LaterFirst>;
  struct Work;  // calls to be compared, by as many threads as want to

  static std::string KeyOf(std::string_view tenant, std::string_view call) {
    return CallKey(tenant, call);
  }
  void NotSealed(std::string call) {
    if (!more_findings_) {
      not_sealed_.insert(std::move(call));
    }
  }
  void NoteReceipt(const LeafFacts& facts);
  void NoteEvent(const LeafFacts& facts);
  static void KeepLatest(std::map<std::string, Missing>& gone, Leaf leaf);
  void CheckGoneResults();
  const store::StoredCall* NextRow();
  void Compare(store::StoredCall row, Leaf leaf);
  void HandOver();
  void Collect();
  void Unlogged(const store::Call& call);
  void Find(std::optional<uint64_t> seq, std::string code, std::string message);
  Status CheckNewRows(uint64_t bytes);
  Status CheckOpenCalls(const std::vector<store::Call>& open);
  Status CheckMissing();
  void NoteRecovered(const Leaf& leaf, const std::string& contradictions);
  Status CheckAgain();
  void Tell(const Leaf& leaf, std::string code, std::string message);
  Status CheckObjects();

  store::Store& store_;
  const std::string directory_;
  const Nanos began_;
  std::optional<Error> error_;  // of reading the store

  store::RecordPlace place_;
  std::vector<store::StoredCall> page_;
  size_t next_ = 0;
  bool rows_end_ = false;

  std::unique_ptr<Work> filling_;
  std::unique_ptr<Work> compared_now_;
  std::thread helper_;

  std::unordered_map<std::string, std::string> decided_;      // no receipt yet; by tenant and call
  std::map<std::string, Missing> missing_;                    // by tenant
  std::map<std::string, int64_t> pruned_before_;              // by tenant, "" for all
  std::map<std::string, int64_t> results_pruned_before_;      // by tenant: with their transcripts
  std::map<std::string, int64_t> results_expired_before_;     // by tenant: without these
  std::map<std::string, int64_t> transcripts_pruned_before_;  // by tenant
  std::map<std::string, Leaf> gone_transcripts_;              // the latest of each tenant
  std::map<std::string, Missing> gone_results_;               // by tenant
  std::map<std::string, Missing> gone_files_;                 // by tenant
  std::set<std::string> ended_in_log_;  // and run in the store; by tenant and call
  std::set<std::string> not_sealed_;    // calls whose row is a finding
  std::vector<Again> again_;
  std::vector<LogFinding> findings_;
  std::vector<LogFinding> notes_;
  bool more_findings_ = false;
  uint64_t compared_ = 0;
};

}  // namespace coffer::audit
