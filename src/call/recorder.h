// SPDX-License-Identifier: Apache-2.0
//
// The rungs "record" and "seal": the store and the audit log, written in the one order that keeps both true.
//
//   Start   the decision is on disk in the log, then in the store; only then may anything run
//   End     the receipt's hash is on disk in the log, then the sealed receipt in the store; only
//           then is it acknowledged
//
// What cannot be written at its end (a full disk) is kept and written again before the next call
// starts, and until that has worked no call starts: nothing that ran is forgotten while this
// process lives, and if it dies, the store's recovery ends those calls. Secrets are scrubbed from
// everything that is written here. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log/log.h"
#include "audit/receipt.h"
#include "audit/sealed_call.h"
#include "call/breaker.h"
#include "call/events.h"
#include "call/refusal_flood.h"
#include "call/tool_call.h"
#include "store/admission.h"
#include "store/call.h"
#include "store/recovery.h"
#include "store/retention.h"
#include "store/store.h"
#include "store/supervisor.h"

namespace coffer::call {

// How a call leaves the ladder.
enum class Ending : uint8_t {
  kFinished,       // its boundary was launched and its end was seen
  kLost,           // it may have run; how far is not known
  kRefused,        // nothing ran; a retry with the same key hears the same
  kRefusedForNow,  // nothing ran, and nothing was decided about the request: the key is free again
};

class Recorder {
 public:
  // How many receipts are kept that cannot be written; there are hardly more than calls that ran at the same time.
  static constexpr size_t kMostUnwritten = 4096;
  Recorder(store::Store& store, audit::Log& log, size_t most_unwritten = kMostUnwritten,
           RefusalFlood::Allowance allowance = {})
      : store_(store),
        log_(log),
        most_unwritten_(most_unwritten),
        fingerprint_key_(log.Sign("coffer fingerprint key\n")),
        events_(store, log, most_unwritten),
        flood_(allowance) {}
  ~Recorder();  // writes the pending counts
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  store::Store& store() { return store_; }
  audit::Log& log() { return log_; }

  // Without receivers the outbox gets no event. Set before the first call.
  void SetReceivers(Receivers receivers) { events_.Receive(std::move(receivers)); }
  // The receivers of this state directory's daemon, which sends what this process leaves in the outbox.
  Status UseKnownReceivers();

  // The manifest and the envelope in canonical form. They can be looked up by the hashes in the receipt later.
  struct Allowed {
    std::string manifest;  // empty: none
    std::string envelope;
  };
  // Status: whether it may run.
  Status Start(const audit::Receipt& receipt, Allowed allowed);

  // Seals: fills the reply's receipt and its place in the log; keeps the reply's transcript. An
  // Error: not acknowledged, kept for later.
  Status End(Ending ending, const audit::Receipt& receipt, ToolReply& reply);

  // A request that was not admitted; gets an id and a receipt of its own. Only those of a flood
  // that a rate limit refuses (kRateLimited) share theirs (refusal_flood.h), and an event
  // `refusals.counted` of the log says how many did.
  Status Refuse(const store::AdmitRequest& request, audit::Receipt receipt, ToolReply& reply);
  // How long a tenant has to wait that has used up its receipts for refusals in the log; 0: no
  // wait. Until then each of its refusals must be one by a limit (kRateLimited).
  Nanos WaitToRefuse(const store::TenantId& tenant) const;

  // An operator's action, before or after it. Details are short words.
  using Detail = std::map<std::string, std::string>;
  Status Event(const std::string& tenant, std::string_view name, const Detail& detail);
  // An event that has happened already. If it cannot be recorded now, it is kept for later.
  Status Happened(const std::string& tenant, std::string_view name, const Detail& detail);

  // Receipts of calls whose process died. A row that says otherwise than the log was edited: it gets
  // none, so no reader is shown it and `audit verify` names it.
  Status Settle(std::span<const store::RecoveredCall> calls);

  // Forgets what is older than its time, for a timer or an operator. The log keeps the hashes, and
  // events of it say up to when bodies may be missing, before they are: `pruned` of whole calls,
  // `results.expired` of results and files, `transcripts.pruned`.
  Result<store::Pruned> Prune(const store::TenantId& tenant, const store::Retention& retention);

  // Removes the oldest bodies of a tenant that keeps more than `bytes`: results first, then whole
  // calls. What goes is in the log before it is gone: `results.pruned` or `pruned`, with whose, how
  // many and up to when. For a timer; a part of it at once. The number of bodies.
  Result<uint64_t> PruneToSize(const store::TenantId& tenant, uint64_t bytes);

  // Writes the receipts and events that are kept; for a timer.
  Status WritePending();
  size_t pending() const;
  // Receipts of calls that could not be written and were too many to be kept. The log says so when
  // it can be written again; the store's recovery ends those calls.
  uint64_t lost() const;

  // Called once for every receipt, also for those that are kept for later or share one; from any thread. Set
  // before the first call.
  void OnEnd(std::function<void(const audit::Receipt&)> told) { told_ = std::move(told); }

  // The circuit breaker counts calls that were denied something before their end is acknowledged, so the next call
  // already finds the pause. `config` is asked for it, `tripped` told of each pause, from any thread; both may be empty.
  // Set before the first call.
  struct Breaker {
    std::function<BreakerConfig(const store::TenantId&)> config;
    std::function<void(const store::Pause&)> tripped;
  };
  void SetBreaker(Breaker breaker) { breaker_ = std::move(breaker); }

  // A call as it may be shown: compared with its sealed receipt.
  Result<audit::SealedCall> ReadSealed(const store::Call& row) const;

  // Tells two texts apart without saying anything about them to a reader without the key: arguments may be guessable.
  std::string Fingerprint(std::string_view text) const;

 private:
  struct Unwritten {
    Ending ending = Ending::kFinished;
    audit::Receipt receipt;
    ToolReply reply;
    bool logged = false;   // only the store still lacks it
    bool counted = false;  // by the breaker
  };
  Status Write(Unwritten& end);
  // How the call ended by its new receipt; empty: it got none.
  Result<std::string> SealRecovered(const store::Call& call, const audit::CallRecords& before);
  Status CountDenied(const audit::Receipt& receipt);
  // Looked up once: a process does not change.
  Result<store::Supervisor> ThisProcess();
  store::CallEnd EndOf(const audit::Receipt& receipt, const ToolReply& reply) const;
  Status WriteRefusal(const store::AdmitRequest& request, audit::Receipt receipt, ToolReply& reply);
  void SayCounts(Nanos now);
  void SayLost();
  Result<bool> HasCallsBefore(const store::TenantId& tenant, Nanos before);
  Status SayPruned(const store::TenantId& tenant, std::string_view name, Nanos before);
  Status SayExpiredResults(const store::TenantId& tenant, Nanos before);

  store::Store& store_;
  audit::Log& log_;
  const size_t most_unwritten_;
  const std::string fingerprint_key_;  // derived from the log's key
  Events events_;
  std::function<void(const audit::Receipt&)> told_;
  Breaker breaker_;
  mutable std::mutex mutex_;  // of what follows
  std::deque<Unwritten> unwritten_;
  uint64_t lost_ = 0;
  uint64_t lost_said_ = 0;  // of those
  std::optional<store::Supervisor> self_;
  RefusalFlood flood_;
  std::set<std::string> said_results_;  // tenants for which SayExpiredResults was called
};

}  // namespace coffer::call
