// SPDX-License-Identifier: Apache-2.0
#include "call/ladder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "call/redact.h"
#include "call/request_terms.h"
#include "call/workspace_room.h"
#include "policy/manifest/manifest.h"
#include "policy/narrowing.h"
#include "policy/scrub.h"
#include "store/admission.h"
#include "store/session.h"
#include "watch/incident.h"

namespace coffer::call {
namespace {

constexpr const char* kNobodyKnows =
    "the call was started and nobody saw its end; look at what it was to change";

ToolReply Reply(ToolRefusal refusal, const Error& error) {
  ToolReply reply;
  reply.refusal = refusal;
  reply.outcome = refusal == ToolRefusal::kFailed ? "error" : "denied";
  reply.error_class = error.code;
  reply.error_message = error.message;
  reply.hint = error.hint;
  return reply;
}

// The store or the host failed: the agent learns that, and nothing of the host.
ToolReply Failed(const Error& error) {
  ToolReply reply = Reply(ToolRefusal::kFailed, error);
  const bool record = error.code.starts_with("store.") || error.code.starts_with("audit.");
  reply.error_class = record ? kRecordUnavailable : "internal";
  return reply;
}

ToolRefusal RefusalOf(store::AdmitVerdict verdict) {
  switch (verdict) {
    case store::AdmitVerdict::kInFlight:
      return ToolRefusal::kInFlight;
    case store::AdmitVerdict::kKeyConflict:
      return ToolRefusal::kKeyConflict;
    case store::AdmitVerdict::kNoSession:
    case store::AdmitVerdict::kNoParent:
      return ToolRefusal::kNotFound;
    case store::AdmitVerdict::kRetryTooSoon:
    case store::AdmitVerdict::kBudgetSpent:
    case store::AdmitVerdict::kRateLimited:
      return ToolRefusal::kRateLimited;
    default:
      return ToolRefusal::kDenied;
  }
}

std::string RequestHash(const ToolRequest& request, const std::string& args_hash) {
  // The agent too: a key is the tenant's, but what one agent was answered is not told to another.
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.agent, request.tool, args_hash,
                                 request.session_id, request.parent_id, request.dry_run);
  if (request.background || !request.limits_json.empty()) {
    text += fmt::format("\n{}\n{}\n{}", request.background, fmt::join(request.ports, ","),
                        request.limits_json);
  }
  return HashOf(text);
}

audit::Receipt ReceiptOf(const ToolRequest& request, Nanos now) {
  audit::Receipt receipt;
  receipt.parent_id = request.parent_id;
  receipt.session_id = request.session_id;
  receipt.trace_id = request.trace_id;
  receipt.parent_span = request.parent_span;
  receipt.tenant = request.tenant.name();
  receipt.agent = request.agent;
  receipt.user = request.user;
  receipt.tool = request.tool;
  receipt.requested_at = now;
  return receipt;
}

// A refusal as its receipt and its answer tell it. `target` is what was asked for.
void FillRefusal(const Error& error, Nanos now, const std::string& target, audit::Receipt& receipt,
                 ToolReply& reply) {
  receipt.outcome = reply.outcome;
  receipt.error_class = reply.error_class;
  receipt.error_message = reply.error_message;
  receipt.finished_at = now;
  receipt.duration = receipt.finished_at - receipt.requested_at;
  if (error.kind == ErrorKind::kRefused) {
    audit::Denial denial;
    denial.surface = "policy";
    denial.operation = "call";
    denial.target = target;
    denial.rule = error.code;
    denial.reason = error.message;
    denial.fix = error.hint;
    receipt.denials.push_back(denial);
    reply.denials.push_back(std::move(denial));
  }
}

// What is stored of a call is not what was sealed: nothing of it is told.
ToolReply Broken(const std::string& call_id) {
  ToolReply reply = Reply(ToolRefusal::kFailed,
                          Internal(kRecordBroken,
                                   "what is stored of the call that used this key is not what was "
                                   "sealed; it is not run again"));
  reply.hint = "the operator can look with `coffer audit verify`";
  reply.call_id = call_id;
  reply.outcome = "unknown";
  return reply;
}

ToolReply Replayed(Recorder& recorder, const ToolRequest& request,
                   const store::Admission& admission) {
  const bool ended = admission.state == store::CallState::kFinished ||
                     admission.state == store::CallState::kRefused;
  if (admission.result.empty() && !ended) {
    // It was under way when a process died: nobody knows how far it came, and it is not run again.
    ToolReply lost = Failed(Internal("internal", kNobodyKnows));
    lost.call_id = admission.call_id;
    lost.outcome = "unknown";
    lost.replayed = true;
    return lost;
  }
  const Result<std::optional<store::Call>> row =
      store::FindCall(recorder.store(), request.tenant, admission.call_id);
  const Result<audit::SealedCall> sealed =
      row.ok() && *row ? recorder.ReadSealed(**row)
                       : Result<audit::SealedCall>(Internal("store.call", "the call is gone"));
  if (!sealed.ok()) {
    return Failed(sealed.error());
  }
  // The key's own row is not sealed: it must at least lead to a call of this agent and tool.
  if (sealed->state != audit::SealState::kGood || sealed->result.value_or("") != admission.result ||
      sealed->call.agent != request.agent || sealed->call.tool != request.tool) {
    return Broken(admission.call_id);
  }
  if (!sealed->result) {
    // How it ended is in its receipt; what it said was pruned (Recorder::PruneToSize).
    ToolReply gone;
    gone.call_id = admission.call_id;
    gone.outcome = sealed->call.outcome ? store::OutcomeName(*sealed->call.outcome) : "unknown";
    gone.error_class = "policy.storage";
    gone.error_message = "the call has ended as it says here; its result was removed to make room";
    gone.log = sealed->log;
    gone.admitted = true;
    gone.replayed = true;
    return gone;
  }
  Result<ToolReply> stored = ParseReply(admission.result);
  if (!stored.ok()) {
    return Failed(stored.error());
  }
  stored->log = sealed->log;
  stored->replayed = true;
  return std::move(stored).value();
}

// An action that cannot be taken back must not happen twice because an answer was lost.
bool LacksKey(const policy::Manifest& manifest, const ToolRequest& request) {
  return manifest.NeedsIdempotencyKey() && request.idempotency_key.empty() && !request.dry_run;
}

// The runner's receipt knows how it went, ours who asked for what.
audit::Receipt Merge(const audit::Receipt& before, audit::Receipt after) {
  after.call_id = before.call_id;
  after.parent_id = before.parent_id;
  after.trace_id = before.trace_id;
  after.parent_span = before.parent_span;
  after.session_id = before.session_id;
  after.tenant = before.tenant;
  after.agent = before.agent;
  after.user = before.user;
  after.tool = before.tool;
  after.tool_version = before.tool_version;
  after.manifest_hash = before.manifest_hash;
  after.envelope_id = before.envelope_id;
  after.effect = before.effect;
  after.blast_radius = before.blast_radius;
  after.args_hash = before.args_hash;
  after.args_redacted = before.args_redacted;
  after.requested_at = before.requested_at;
  return after;
}

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

}  // namespace

std::variant<ReadyCall, ToolReply> Ladder::Climb(const ToolRequest& request) {
  const Result<Json> args = ParseJson(request.args_json);
  const std::shared_ptr<const policy::Tool> tool = shelf_.Find(request.tool);
  const bool readable = args.ok() && args->is_object();
  const std::string exactly =
      recorder_.Fingerprint(readable ? PrintJson(*args) : request.args_json);

  store::AdmitRequest asked;
  asked.tenant = request.tenant;
  asked.agent = request.agent;
  asked.user = request.user;
  asked.tool = request.tool;
  asked.session_id = request.session_id;
  asked.parent_id = request.parent_id;
  asked.args_hash = request.dry_run ? "" : exactly;  // what was not run has not failed
  asked.idempotency_key = request.dry_run ? "" : request.idempotency_key;
  asked.request_hash = RequestHash(request, exactly);
  asked.max_depth = options_.max_depth;
  asked.trace_id = request.trace_id;
  asked.quotas = options_.quotas ? options_.quotas(request.tenant) : store::Quotas{};
  audit::Receipt receipt = ReceiptOf(request, store_.Now());
  asked.requested_at = receipt.requested_at;
  if (tool == nullptr) {
    asked.tool = receipt.tool = policy::ScrubText(request.tool);  // it may be anything
  }
  if (!readable) {
    return RefuseUnadmitted(
        asked, std::move(receipt),
        Reply(ToolRefusal::kInvalid, Refused("policy.args", "the arguments are not one JSON object",
                                             "write them as {\"name\": value}")));
  }
  receipt.args_hash = HashOf(PrintJson(policy::ScrubJson(*args)));
  receipt.args_redacted = RedactArgs(*args);
  if (tool == nullptr) {
    ToolReply reply = Reply(
        ToolRefusal::kNotFound,
        Refused("policy.tool", fmt::format("there is no tool called {}", Printable(receipt.tool)),
                "`coffer tools list` names them"));
    return RefuseUnadmitted(asked, std::move(receipt), std::move(reply));
  }
  receipt.tool_version = tool->manifest.tool.version;
  receipt.manifest_hash = tool->hash;
  receipt.effect = policy::EffectName(tool->manifest.tool.effect);
  if (LacksKey(tool->manifest, request)) {
    return RefuseUnadmitted(
        asked, std::move(receipt),
        Reply(ToolRefusal::kInvalid,
              Refused("policy.idempotency",
                      fmt::format("a call of {} ({}) needs an idempotency key", request.tool,
                                  policy::EffectName(tool->manifest.tool.effect)),
                      "send a UUID of your own for each action, and the same one when you retry: "
                      "the header Idempotency-Key, or `coffer call --idempotency-key`")));
  }

  // evaluate: what does not fit takes nothing from the rates of calls
  std::string workspace;
  std::optional<store::Session> session;
  if (!request.session_id.empty()) {
    Result<std::optional<store::Session>> found =
        store::FindSession(store_, request.tenant, request.session_id);
    if (!found.ok()) {
      return Failed(found.error());
    }
    session = std::move(*found);
    // Of a session of this agent that is open; admission refuses the others, and their files may be gone.
    if (session && (session->agent != request.agent || session->ended_at)) {
      session.reset();
    }
    workspace = session ? options_.sessions + "/" + session->workspace : "";
  }
  const Nanos began = BootTime();
  Result<Evaluation> evaluation = Evaluate(*tool, *args, workspace);
  if (evaluation.ok()) {
    if (Status terms = ApplyTerms(*tool, request, evaluation->run); !terms.ok()) {
      evaluation = std::move(terms.error());
    }
  }
  if (options_.evaluated) {
    options_.evaluated(request.tenant, BootTime() - began);
  }
  asked.invalid = !evaluation.ok();
  if (evaluation.ok() && session) {
    if (const Status room = NarrowToWorkspace(workspace, *session, evaluation->run.envelope.limits);
        !room.ok()) {
      return Failed(room.error());
    }
  }

  // admit; what is owed to the log goes first, and until it is written nothing new begins
  if (const Status owed = recorder_.WritePending(); !owed.ok()) {
    return Failed(owed.error());
  }
  if (const Status room = options_.may_begin ? options_.may_begin() : Status(); !room.ok()) {
    return Failed(room.error());
  }
  HostBudget::Seat seat;
  // A repetition needs no place on this host: it is answered below, whatever runs.
  const Result<std::optional<store::Admission>> repeated = store::FindRepetition(store_, asked);
  if (!repeated.ok()) {
    return Failed(repeated.error());
  }
  if (options_.budget != nullptr && evaluation.ok() && !request.dry_run && !*repeated) {
    HostBudget::Answer taken =
        options_.budget->Take(request.tenant.name(), evaluation->run.envelope.limits.memory);
    if (taken.seat == nullptr) {
      ToolReply reply =
          Reply(ToolRefusal::kRateLimited, Refused("policy.host", taken.reason, "try again later"));
      reply.retry_after_seconds = 1;
      return RefuseUnadmitted(asked, std::move(receipt), std::move(reply));
    }
    seat = std::move(taken.seat);
  }
  asked.quotas.tool = tool->manifest.rate;
  asked.quotas.retry_cooldown = tool->manifest.retry;
  const Result<store::Admission> admission = store::AdmitCall(store_, asked);
  if (!admission.ok()) {
    return Failed(admission.error());
  }
  if (admission->verdict == store::AdmitVerdict::kReplay) {
    return Replayed(recorder_, request, *admission);
  }
  if (admission->verdict != store::AdmitVerdict::kAdmitted) {
    ToolReply reply =
        Reply(RefusalOf(admission->verdict), Refused(admission->error_class, admission->reason));
    if (admission->retry_after.count() > 0) {
      reply.retry_after_seconds = admission->RetryAfterSeconds();
    }
    if (admission->verdict == store::AdmitVerdict::kInFlight) {
      reply.call_id = admission->call_id;  // a repetition: the call that it repeats has the receipt
      return reply;
    }
    std::string target = receipt.tool;
    // Not theirs, or not there: nothing goes under that name, and the denial says which it was.
    if (admission->verdict == store::AdmitVerdict::kNoSession) {
      target = "session " + Printable(receipt.session_id);
      asked.session_id.clear();
      receipt.session_id.clear();
    }
    if (admission->verdict == store::AdmitVerdict::kNoParent) {
      target = "call " + Printable(receipt.parent_id);
      asked.parent_id.clear();
      receipt.parent_id.clear();
    }
    return RefuseUnadmitted(asked, std::move(receipt), std::move(reply), target);
  }
  ReadyCall call;
  call.call_id = admission->call_id;
  call.request = request;
  call.tool = tool;
  call.seat = std::move(seat);
  call.receipt = std::move(receipt);
  call.receipt.call_id = call.call_id;
  if (!evaluation.ok()) {
    const std::vector<GivenWord> given = WordsOf(*args);
    Error error = std::move(evaluation.error());
    error.message = TakeOut(given, std::move(error.message));
    error.hint = TakeOut(given, std::move(error.hint));
    return Refuse(request, Ending::kRefused, call.receipt, ToolRefusal::kUnprocessable, error);
  }
  return Evaluated(std::move(call), std::move(evaluation).value());
}

std::variant<ReadyCall, ToolReply> Ladder::Evaluated(ReadyCall call, Evaluation evaluation) {
  const ToolRequest& request = call.request;
  audit::Receipt& receipt = call.receipt;

  call.run = std::move(evaluation.run);
  call.stdin_text = std::move(evaluation.stdin_text);
  if (!request.parent_id.empty()) {
    // A call that a call makes has at most what its maker has.
    const std::optional<policy::Envelope> parent = RunningEnvelope(request.parent_id);
    Result<policy::Envelope> narrowed =
        !parent ? Result<policy::Envelope>(
                      Refused("policy.parent", "the parent call does not run here"))
                : policy::Intersect(*parent, call.run.envelope);
    if (!narrowed.ok()) {
      return Refuse(request, Ending::kRefused, receipt, ToolRefusal::kDenied, narrowed.error());
    }
    call.run.envelope = std::move(narrowed).value();
  }
  receipt.envelope_id = policy::EnvelopeId(call.run.envelope);
  receipt.blast_radius = evaluation.blast_radius;
  if (request.dry_run) {
    ToolReply reply = Refuse(request, Ending::kRefused, receipt, ToolRefusal::kNone,
                             Refused("policy.dry_run", "it would be allowed; nothing was run"));
    reply.outcome = "success";
    reply.error_class.clear();
    reply.error_message.clear();
    reply.denials.clear();
    reply.stdout_text = "it " + receipt.blast_radius + "\n";
    return reply;
  }

  // record: nothing happens that is not on disk before
  if (const Status recorded = recorder_.Start(request.tenant, receipt); !recorded.ok()) {
    return Refuse(request, Ending::kRefusedForNow, receipt, ToolRefusal::kFailed, recorded.error());
  }
  const std::lock_guard lock(mutex_);
  running_[call.call_id] = call.run.envelope;
  return call;
}

ToolReply Ladder::Refuse(const ToolRequest& request, Ending ending, audit::Receipt receipt,
                         ToolRefusal refusal, const Error& error) {
  ToolReply reply = Reply(refusal, error);
  reply.call_id = receipt.call_id;
  FillRefusal(error, store_.Now(), receipt.tool, receipt, reply);
  if (const Status wrote = recorder_.End(request.tenant, ending, receipt, reply); !wrote.ok()) {
    return Failed(wrote.error());
  }
  return reply;
}

ToolReply Ladder::RefuseUnadmitted(const store::AdmitRequest& asked, audit::Receipt receipt,
                                   ToolReply reply, const std::string& target) {
  if (reply.refusal != ToolRefusal::kRateLimited) {
    // It takes from the rates like any other request: they bound how many of its kind are written.
    const Result<std::optional<store::Admission>> spent = store::ChargeRefusal(store_, asked);
    if (!spent.ok()) {
      return Failed(spent.error());
    }
    if (*spent) {
      reply = Reply(ToolRefusal::kRateLimited, Refused((*spent)->error_class, (*spent)->reason));
      reply.retry_after_seconds = (*spent)->RetryAfterSeconds();
    }
  }
  FillRefusal(Refused(reply.error_class, reply.error_message, reply.hint), store_.Now(),
              target.empty() ? receipt.tool : target, receipt, reply);
  if (const Status wrote = recorder_.Refuse(asked, std::move(receipt), reply); !wrote.ok()) {
    return Failed(wrote.error());
  }
  return reply;
}

std::optional<policy::Envelope> Ladder::RunningEnvelope(const std::string& call_id) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(call_id);
  return found == running_.end() ? std::nullopt : std::optional(found->second);
}

ToolReply Ladder::Descend(const ReadyCall& call, Collected collected) {
  {
    const std::lock_guard lock(mutex_);
    running_.erase(call.call_id);
  }
  ToolReply reply;
  reply.call_id = call.call_id;
  reply.stdout_text = std::move(collected.stdout_text);
  reply.stderr_text = std::move(collected.stderr_text);
  Result<audit::Receipt> ran =
      collected.report ? audit::ParseReceipt(collected.report->receipt)
                       : Result<audit::Receipt>(Internal("internal", "no report came back"));
  audit::Receipt receipt = call.receipt;
  Ending ending = Ending::kFinished;
  if (ran.ok()) {
    receipt = Merge(call.receipt, std::move(ran).value());
    KeepStoreTime(store_.Now(), receipt);
    receipt.incidents = watch::DescribeIncidents(receipt.syscalls_denied);
    reply.hint = collected.report->error ? collected.report->error->hint : "";
  } else {
    // It may have run, wholly or in part: nobody knows, and it is never run again on its own.
    ending = Ending::kLost;
    receipt.outcome = "unknown";
    receipt.error_class = "internal";
    receipt.error_message = kNobodyKnows;
    receipt.finished_at = store_.Now();
    receipt.duration = receipt.finished_at - receipt.requested_at;
    reply.refusal = ToolRefusal::kFailed;
  }
  TakeOutcome(receipt, reply);
  if (const Status wrote = recorder_.End(call.request.tenant, ending, receipt, reply);
      !wrote.ok()) {
    // It ran; that its end cannot be written must not look like success.
    ToolReply failed = Failed(wrote.error());
    failed.call_id = call.call_id;
    failed.admitted = true;
    failed.outcome = "unknown";
    failed.receipt = reply.receipt;
    return failed;
  }
  return reply;
}

ToolReply Ladder::DescendUnlaunched(const ReadyCall& call, const Error& error) {
  audit::Receipt receipt;
  receipt.outcome = error.kind == ErrorKind::kRefused ? "denied" : "error";
  receipt.error_class = error.code;
  receipt.error_message = error.message;
  receipt.finished_at = store_.Now();
  Collected collected;
  collected.report = RunReport{125, error, audit::FormatReceipt(receipt)};
  ToolReply reply = Descend(call, std::move(collected));
  reply.refusal = ToolRefusal::kFailed;
  return reply;
}

}  // namespace coffer::call
