// SPDX-License-Identifier: Apache-2.0
#include "call/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "audit/export/cloud_event.h"
#include "audit/seal.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/json.h"
#include "call/recovered_receipt.h"
#include "policy/scrub.h"
#include "store/admission.h"
#include "store/call.h"
#include "store/outbox.h"

namespace coffer::call {
namespace {

// The store will not take it later either: another process has ended the call.
bool Hopeless(const Error& error) {
  return error.code == "store.state" || error.code == "store.owner" || error.code == "store.call";
}

void Scrub(std::vector<audit::Denial>& denials) {
  for (audit::Denial& denial : denials) {
    denial.target = policy::ScrubText(denial.target);
    denial.reason = policy::ScrubText(denial.reason);
  }
}

// A sentence of the receipt may quote an argument in it.
void Scrub(audit::Receipt& receipt) {
  receipt.error_message = policy::ScrubText(receipt.error_message);
  for (std::string& argument : receipt.args_redacted) {
    argument = policy::ScrubText(argument);
  }
  Scrub(receipt.denials);
  for (std::string& incident : receipt.incidents) {
    incident = policy::ScrubText(incident);
  }
}

uint64_t UsedOf(const audit::Receipt& receipt, std::string_view name) {
  for (const auto& [limit, use] : receipt.limits) {
    if (limit == name) {
      return use.used.value_or(0);
    }
  }
  return 0;
}

// The receipt in the log, and sealed.
Status SealReceipt(audit::Log& log, const audit::Receipt& receipt, bool ran, bool recovered,
                   ToolReply& reply) {
  TRY_ASSIGN(const audit::ReceiptBody body, audit::MakeBody(audit::FormatReceipt(receipt)));
  audit::ReceiptRecord record;
  record.at =
      receipt.finished_at;  // retention goes by the end of a call, and so does an event `pruned`
  record.identity = receipt.identity;
  record.outcome = receipt.outcome;
  record.error_class = receipt.error_class;
  record.ran = ran;
  record.recovered = recovered;
  record.body = body.hash;
  TRY_ASSIGN(const audit::Appended appended, log.Append(record));
  TRY_ASSIGN(reply.receipt, audit::SealReceipt(body, appended, log));
  reply.log = appended.position;
  return {};
}

audit::EventRecord EventOf(const std::string& tenant, std::string_view name,
                           const Recorder::Detail& detail) {
  audit::EventRecord event;
  event.tenant = tenant;
  event.name = name;
  for (const auto& [key, value] : detail) {
    event.detail.emplace_back(key, policy::ScrubText(value));
  }
  return event;
}

// What a receipt says that stands for several refusals: nothing that only one of them has.
void KeepCommon(const RefusalFlood::Whose& whose, store::AdmitRequest& request,
                audit::Receipt& receipt) {
  store::CallIdentity common;
  common.tenant = whose.tenant;
  common.agent = whose.agent;
  common.tool = whose.tool;
  request.identity = receipt.identity = std::move(common);
  if (whose.tool == RefusalFlood::kOthers) {
    receipt.tool_version.clear();
    receipt.manifest_hash.clear();
  }
  request.args_hash.clear();
  receipt.args_hash.clear();
  receipt.args_redacted.clear();
  receipt.error_message +=
      " (a flood: this receipt stands for this call and others that came soon after it; the event "
      "refusals.counted says for how many)";
}

}  // namespace

store::CallEnd Recorder::EndOf(const audit::Receipt& receipt, const ToolReply& reply) const {
  store::CallEnd end;
  end.outcome = store::FindOutcome(receipt.outcome).value_or(store::Outcome::kError);
  end.error_class = receipt.error_class;
  end.error_message = receipt.error_class.empty() ? "" : receipt.error_message;
  end.exit_code = receipt.exit_code;
  end.exit_signal = receipt.exit_signal;
  end.receipt = reply.receipt;
  end.cpu = Nanos(UsedOf(receipt, "cpu"));
  end.bytes_out = receipt.output_bytes;
  end.denials = receipt.denials.size();
  end.started_at = receipt.started_at;
  end.finished_at = receipt.finished_at;
  if (reply.log) {
    end.log_index = reply.log->index;
  }
  end.send_to = events_.ReceiversOf(audit::CallEventType(receipt.outcome));
  return end;
}

Status Recorder::Start(const audit::Receipt& receipt, Allowed allowed) {
  TRY(WritePending());
  audit::DecisionRecord decision;
  decision.identity = receipt.identity;
  decision.tool_version = receipt.tool_version;
  decision.manifest = receipt.manifest_hash;
  decision.envelope = receipt.envelope_id;
  decision.effect = receipt.effect;
  decision.args_hash = receipt.args_hash;
  audit::Receipt shown;
  shown.args_redacted = receipt.args_redacted;
  Scrub(shown);
  const std::string args_redacted = PrintJson(Json(shown.args_redacted));
  decision.shown = audit::ShownHash(args_redacted, receipt.identity.reason);
  // The log first: a crash between the two leaves a decision that was not carried out, never a call
  // without a decision.
  TRY(log_.Append(decision));

  store::CallDecision record;
  record.tool_version = receipt.tool_version;
  record.manifest_hash = receipt.manifest_hash;
  record.envelope_id = receipt.envelope_id;
  record.effect = receipt.effect;
  record.manifest = std::move(allowed.manifest);
  record.envelope = std::move(allowed.envelope);
  record.args_redacted = args_redacted;
  TRY_ASSIGN(const store::Supervisor supervisor, ThisProcess());
  return store::RecordAndStartCall(store_, receipt.identity.tenant, receipt.identity.call_id,
                                   record, supervisor);
}

Result<store::Supervisor> Recorder::ThisProcess() {
  const std::lock_guard lock(mutex_);
  if (!self_ || self_->pid != ::getpid()) {
    TRY_ASSIGN(self_, store::ThisProcess());
  }
  return *self_;
}

Status Recorder::Write(Unwritten& end) {
  const std::string result = FormatReply(end.reply);
  // The log has it once, also if the store takes it only at a later try.
  if (!end.logged) {
    end.receipt.result_sha256 = HashOf(result);
    end.receipt.transcript_sha256 =
        end.reply.transcript.empty() ? "" : HashOf(end.reply.transcript);
    const bool ran = end.ending == Ending::kFinished || end.ending == Ending::kLost;
    TRY(SealReceipt(log_, end.receipt, ran, /*recovered=*/false, end.reply));
    end.logged = true;
  }
  if (!end.counted) {
    TRY(CountDenied(end.receipt));
    end.counted = true;
  }
  store::CallEnd row = EndOf(end.receipt, end.reply);
  row.result = result;
  row.transcript = end.reply.transcript;
  for (size_t i = 0; i < end.reply.exports.size() && i < end.receipt.exported.size(); ++i) {
    row.files.push_back({end.receipt.exported[i].path, end.reply.exports[i]});
  }
  const std::string& id = end.receipt.identity.call_id;
  const store::TenantId& tenant = end.receipt.identity.tenant;
  switch (end.ending) {
    case Ending::kFinished:
      return store::FinishCall(store_, tenant, id, row);
    case Ending::kLost:
      return store::LoseCall(store_, tenant, id, row);
    case Ending::kRefused:
      return store::RefuseCall(store_, tenant, id, row, store::KeyFate::kKeep);
    case Ending::kRefusedForNow:
      return store::RefuseCall(store_, tenant, id, row, store::KeyFate::kRelease);
  }
  return {};
}

Status Recorder::CountDenied(const audit::Receipt& receipt) {
  const store::CallIdentity& call = receipt.identity;
  const BreakerConfig config = breaker_.config ? breaker_.config(call.tenant) : BreakerConfig{};
  if (!IsCounted(receipt, config)) {
    return {};
  }
  TRY_ASSIGN(const std::optional<store::Pause> pause,
             store::CountDenied(store_, call, config.rule));
  if (!pause) {
    return {};
  }
  // They are paused already: that it cannot be recorded now must not undo it.
  (void)Happened(call.tenant.name(), "breaker.tripped",
                 {{"agent", call.agent},
                  {"tool", call.tool},
                  {"call", call.call_id},
                  {"reason", pause->why},
                  {"until", FormatTime(pause->until)}});
  if (breaker_.tripped) {
    breaker_.tripped(*pause);
  }
  return {};
}

Status Recorder::End(Ending ending, const audit::Receipt& receipt, ToolReply& reply) {
  std::vector<std::string> exports = std::exchange(reply.exports, {});  // large: not copied
  Unwritten end{ending, receipt, reply};
  end.reply.exports = std::move(exports);
  end.reply.admitted = true;
  Scrub(end.receipt);
  // The answer for a retry is stored too, in the words for an agent.
  end.reply.error_message = policy::ScrubText(end.reply.error_message);
  end.reply.hint = policy::ScrubText(end.reply.hint);
  Scrub(end.reply.denials);
  const Status written = Write(end);
  if (told_) {
    told_(end.receipt);
  }
  if (ending == Ending::kRefused || ending == Ending::kRefusedForNow) {
    const std::lock_guard lock(mutex_);
    flood_.Charge(receipt.identity.tenant, store_.Now());
  }
  reply.receipt = end.reply.receipt;
  reply.log = end.reply.log;
  reply.admitted = true;
  if (!written.ok()) {
    const std::lock_guard lock(mutex_);
    if (unwritten_.size() < most_unwritten_) {
      unwritten_.push_back(std::move(end));
    } else {
      ++lost_;
    }
  }
  return written;
}

Status Recorder::WritePending() {
  for (;;) {
    std::optional<Unwritten> next;
    {
      const std::lock_guard lock(mutex_);
      if (unwritten_.empty()) {
        break;
      }
      next = std::move(unwritten_.front());
      unwritten_.pop_front();
    }
    if (const Status written = Write(*next); !written.ok() && !Hopeless(written.error())) {
      const std::lock_guard lock(mutex_);
      unwritten_.push_front(std::move(*next));
      return written;
    }
  }
  SayLost();
  SayCounts(store_.Now());
  return events_.SayKept();
}

uint64_t Recorder::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

// What cannot be said now is kept there.
void Recorder::SayLost() {
  uint64_t unsaid = 0;
  {
    const std::lock_guard lock(mutex_);
    unsaid = lost_ - std::exchange(lost_said_, lost_);
  }
  if (unsaid == 0) {
    return;
  }
  audit::EventRecord event;
  event.name = "receipts.lost";
  event.detail = {{"count", static_cast<int64_t>(unsaid)}};
  (void)events_.SayOrKeep(std::move(event));
}

void Recorder::SayCounts(Nanos now) {
  std::vector<RefusalFlood::Counted> over;
  {
    const std::lock_guard lock(mutex_);
    over = flood_.TakeCounts(now);
  }
  for (const RefusalFlood::Counted& counted : over) {
    audit::EventRecord event;
    event.tenant = counted.whose.tenant.name();
    event.name = "refusals.counted";
    event.detail = {{"call", counted.call_id},
                    {"agent", policy::ScrubText(counted.whose.agent)},
                    {"tool", policy::ScrubText(counted.whose.tool)},
                    {"class", counted.whose.error_class},
                    {"count", static_cast<int64_t>(counted.count)},
                    {"since", counted.since.count()},
                    {"until", counted.until.count()}};
    (void)events_.SayOrKeep(std::move(event));
  }
}

Recorder::~Recorder() {
  // Of this second too: no thread will write them later. What fails here is lost with the process.
  try {
    SayCounts(Nanos::max());
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory for a report
  }
}

size_t Recorder::pending() const {
  const std::lock_guard lock(mutex_);
  return unwritten_.size();
}

Status Recorder::Refuse(const store::AdmitRequest& request, audit::Receipt receipt,
                        ToolReply& reply) {
  if (told_) {
    told_(receipt);
  }
  const Nanos now = store_.Now();
  if (reply.refusal != ToolRefusal::kRateLimited) {
    {
      const std::lock_guard lock(mutex_);
      flood_.Charge(receipt.identity.tenant, now);
    }
    return WriteRefusal(request, std::move(receipt), reply);
  }
  RefusalFlood::Answer answer;
  {
    const std::lock_guard lock(mutex_);
    const store::CallIdentity& by = receipt.identity;
    answer = flood_.Take({by.tenant, by.agent, by.tool, receipt.error_class}, now);
  }
  if (answer.shared) {
    reply.call_id = answer.shared->call_id;
    reply.receipt = answer.shared->receipt;
    reply.log = answer.shared->log;
    return {};
  }
  if (!answer.stands_for) {
    return WriteRefusal(request, std::move(receipt), reply);
  }
  store::AdmitRequest common = request;
  KeepCommon(*answer.stands_for, common, receipt);
  TRY(WriteRefusal(common, std::move(receipt), reply));
  const std::lock_guard lock(mutex_);
  flood_.Share(*answer.stands_for, {reply.call_id, reply.receipt, *reply.log}, now);
  return {};
}

Nanos Recorder::WaitToRefuse(const store::TenantId& tenant) const {
  const std::lock_guard lock(mutex_);
  return flood_.WaitFor(tenant, store_.Now());
}

Status Recorder::WriteRefusal(const store::AdmitRequest& request, audit::Receipt receipt,
                              ToolReply& reply) {
  TRY_ASSIGN(receipt.identity.call_id, NewId(receipt.requested_at));
  Scrub(receipt);
  store::AdmitRequest asked = request;
  asked.requested_at = receipt.requested_at;
  const std::string& id = reply.call_id = receipt.identity.call_id;
  TRY(store::AnnounceRefusedCall(store_, asked, id));
  if (Status sealed = SealReceipt(log_, receipt, /*ran=*/false, /*recovered=*/false, reply);
      !sealed.ok()) {
    (void)store::DropAnnounced(store_, asked.identity.tenant, id);  // else recovery ends it
    return sealed;
  }
  return store::AddRefusedCall(store_, asked, id, EndOf(receipt, reply));
}

Status Recorder::Event(const std::string& tenant, std::string_view name, const Detail& detail) {
  return events_.Say(EventOf(tenant, name, detail));
}

Status Recorder::Happened(const std::string& tenant, std::string_view name, const Detail& detail) {
  return events_.SayOrKeep(EventOf(tenant, name, detail));
}

Status Recorder::UseKnownReceivers() {
  TRY_ASSIGN(Receivers known, KnownReceivers(store_));
  SetReceivers(std::move(known));
  // The daemon that would do so may be away for long.
  TRY(store::TrimOutbox(store_, store::AllTenants{}, store::kMostOutboxRows));
  return {};
}

Status Recorder::Settle(std::span<const store::RecoveredCall> calls) {
  audit::CallRecordsByKey unsealed;
  Nanos since = Nanos::max();
  for (const store::RecoveredCall& left : calls) {
    const store::CallIdentity& call = left.call.identity;
    TRY_ASSIGN(const std::optional<std::string> there,
               store::FindReceipt(store_, call.tenant, call.call_id));
    if (!there) {
      unsealed[audit::CallKey(call.tenant.name(), call.call_id)];
      since = std::min(since, audit::IdTime(call.call_id));
    }
  }
  if (!unsealed.empty()) {
    constexpr Nanos kClocksDiffer = std::chrono::hours(1);
    TRY(log_.FindRecords(unsealed, std::max(since, Nanos::min() + kClocksDiffer) - kClocksDiffer));
  }
  for (const store::RecoveredCall& left : calls) {
    const store::CallIdentity& call = left.call.identity;
    std::string outcome = left.call.started_at ? "unknown" : "error";
    const auto known = unsealed.find(audit::CallKey(call.tenant.name(), call.call_id));
    if (known != unsealed.end()) {
      TRY_ASSIGN(outcome, SealRecovered(left.call, known->second));
    }
    if (!outcome.empty()) {
      TRY(store::AddToOutbox(store_, events_.ReceiversOf(audit::CallEventType(outcome)),
                             call.tenant.name(), store::OutboxCallBody(call.call_id)));
    }
    TRY(store::FinishCleanup(store_, call.tenant, call.call_id));
  }
  return {};
}

Result<std::string> Recorder::SealRecovered(const store::Call& call,
                                            const audit::CallRecords& before) {
  TRY_ASSIGN(const RecoveredReceipt recovered, RecoverReceipt(store_, call, before));
  const audit::Receipt& receipt = recovered.receipt;
  TRY_ASSIGN(const audit::ReceiptBody body, audit::MakeBody(audit::FormatReceipt(receipt)));
  if (!audit::Contradictions(before, body.canonical, recovered.ran).empty()) {
    return std::string();  // the row was edited: a seal would make it true
  }
  ToolReply reply;
  TRY(SealReceipt(log_, receipt, recovered.ran, /*recovered=*/true, reply));
  store::SettledEnd end;
  end.state = recovered.ran ? store::CallState::kUnknown : store::CallState::kRefused;
  end.outcome = store::FindOutcome(receipt.outcome).value_or(store::Outcome::kError);
  end.error_class = receipt.error_class;
  end.error_message = receipt.error_class.empty() ? "" : receipt.error_message;
  end.finished_at = receipt.finished_at;
  // Refused if another process was faster; then there is one.
  (void)store::AddReceipt(store_, call.identity.tenant, call.identity.call_id, reply.receipt,
                          reply.log->index, end);
  return receipt.outcome;
}

Result<audit::SealedCall> Recorder::ReadSealed(const store::Call& row) const {
  return audit::ReadSealedCall(store_, row, log_.public_key());
}

std::string Recorder::Fingerprint(std::string_view text) const {
  return KeyedHashOf(fingerprint_key_, text);
}

}  // namespace coffer::call
