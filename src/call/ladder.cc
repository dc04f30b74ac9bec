// SPDX-License-Identifier: Apache-2.0
#include "call/ladder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "policy/blast_radius.h"
#include "policy/narrowing.h"
#include "store/admission.h"
#include "store/call.h"
#include "store/session.h"

namespace coffer::call {
namespace {

constexpr size_t kShownBytes = 64;
constexpr const char* kNobodyKnows =
    "the call was started and nobody saw its end; look at what it was to change";
constexpr Nanos kRetryCooldown = std::chrono::seconds(10);

ToolReply Refuse(ToolRefusal refusal, const Error& error) {
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
  ToolReply reply = Refuse(ToolRefusal::kFailed, error);
  reply.error_class = "internal";
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

// Values are shown only if they are short and plain; what is long is named by its size. The hash is beside them.
std::vector<std::string> Redact(const Json& args) {
  std::vector<std::string> shown;
  for (const auto& [name, value] : args.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : PrintJson(value);
    const bool plain = !value.is_string() && text.size() <= kShownBytes;
    shown.push_back(fmt::format("{}={}", Printable(name),
                                plain ? text : fmt::format("<{} bytes>", text.size())));
  }
  return shown;
}

std::string RequestHash(const ToolRequest& request, const std::string& args_hash) {
  return HashOf(fmt::format("{}\n{}\n{}\n{}\n{}", request.tool, args_hash, request.session_id,
                            request.parent_id, request.dry_run));
}

// What evaluation decides: the boundary, the command, and the words about both.
struct Decision {
  RunRequest run;
  std::string stdin_text;
  std::string blast_radius;
};

Result<Decision> Evaluate(const policy::Tool& tool, const Json& args,
                          const std::string& workspace) {
  TRY_ASSIGN(policy::ToolCall made, policy::PrepareToolCall(tool, args, {workspace}));
  Decision decision;
  decision.blast_radius = policy::Sentence(policy::ComputeBlastRadius(
      made.envelope, tool.manifest.network, {}, tool.manifest.tool.effect));
  decision.run.envelope = std::move(made.envelope);
  decision.run.command = std::move(made.command);
  decision.stdin_text = std::move(made.stdin_text);
  return decision;
}

void FillEnd(const ToolReply& reply, store::CallEnd& end) {
  end.outcome = store::FindOutcome(reply.outcome).value_or(store::Outcome::kError);
  end.error_class = reply.error_class;
  end.error_message = reply.error_message;
  end.exit_code = reply.exit_code;
  end.exit_signal = reply.exit_signal;
  end.receipt = reply.receipt;
  end.result = FormatReply(reply);
}

// A refusal of a call that exists: it has a receipt, and a retry with the same key hears the same.
ToolReply RefuseAdmitted(store::Store& store, const ToolRequest& request, audit::Receipt receipt,
                         ToolRefusal refusal, const Error& error) {
  ToolReply reply = Refuse(refusal, error);
  receipt.outcome = reply.outcome;
  receipt.error_class = reply.error_class;
  receipt.error_message = reply.error_message;
  receipt.finished_at = store.Now();
  receipt.duration = receipt.finished_at - receipt.requested_at;
  reply.call_id = receipt.call_id;
  if (error.kind == ErrorKind::kRefused) {
    audit::Denial denial;
    denial.surface = "policy";
    denial.operation = "call";
    denial.target = receipt.tool;
    denial.rule = error.code;
    denial.reason = error.message;
    denial.fix = error.hint;
    receipt.denials.push_back(denial);
    reply.denials.push_back(denial);
  }
  reply.receipt = audit::FormatReceipt(receipt);
  store::CallEnd end;
  FillEnd(reply, end);
  const store::KeyFate fate =
      refusal == ToolRefusal::kFailed ? store::KeyFate::kRelease : store::KeyFate::kKeep;
  if (Status wrote = store::RefuseCall(store, request.tenant, receipt.call_id, end, fate);
      !wrote.ok()) {
    return Failed(wrote.error());
  }
  return reply;
}

uint64_t UsedOf(const audit::Receipt& receipt, std::string_view name) {
  for (const auto& [limit, use] : receipt.limits) {
    if (limit == name) {
      return use.used.value_or(0);
    }
  }
  return 0;
}

// The runner's receipt knows how it went, ours who asked for what.
audit::Receipt Merge(const audit::Receipt& before, audit::Receipt after) {
  after.call_id = before.call_id;
  after.parent_id = before.parent_id;
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

}  // namespace

std::variant<ReadyCall, ToolReply> Ladder::Climb(const ToolRequest& request) {
  Result<Json> args = ParseJson(request.args_json);
  if (!args.ok() || !args->is_object()) {
    return Refuse(ToolRefusal::kInvalid,
                  Refused("policy.args", "the arguments are not one JSON object",
                          "write them as {\"name\": value}"));
  }
  const std::shared_ptr<const policy::Tool> tool = shelf_.Find(request.tool);
  if (tool == nullptr) {
    return Refuse(
        ToolRefusal::kNotFound,
        Refused("policy.tool", fmt::format("there is no tool called {}", Printable(request.tool)),
                "`coffer tools list` names them"));
  }
  const policy::Manifest& manifest = tool->manifest;
  const std::string args_hash = HashOf(PrintJson(*args));

  // admit
  store::AdmitRequest asked;
  asked.tenant = request.tenant;
  asked.agent = request.agent;
  asked.user = request.user;
  asked.tool = request.tool;
  asked.session_id = request.session_id;
  asked.parent_id = request.parent_id;
  asked.args_hash = args_hash;
  asked.idempotency_key = request.dry_run ? "" : request.idempotency_key;
  asked.request_hash = RequestHash(request, args_hash);
  asked.quotas = options_.quotas;
  asked.quotas.tool = manifest.rate;
  asked.quotas.retry_cooldown = kRetryCooldown;
  asked.max_depth = options_.max_depth;
  Result<store::Admission> admission = store::AdmitCall(store_, asked);
  if (!admission.ok()) {
    return Failed(admission.error());
  }
  if (admission->verdict == store::AdmitVerdict::kReplay) {
    if (admission->result.empty()) {
      // It was under way when a process died: nobody knows how far it came, and it is not run again.
      ToolReply lost = Failed(Internal("internal", kNobodyKnows));
      lost.call_id = admission->call_id;
      lost.outcome = "unknown";
      lost.replayed = true;
      return lost;
    }
    Result<ToolReply> stored = ParseReply(admission->result);
    if (!stored.ok()) {
      return Failed(stored.error());
    }
    stored->replayed = true;
    return std::move(stored).value();
  }
  if (admission->verdict != store::AdmitVerdict::kAdmitted) {
    ToolReply reply =
        Refuse(RefusalOf(admission->verdict), Refused(admission->error_class, admission->reason));
    if (admission->retry_after.count() > 0) {
      reply.retry_after_seconds = admission->RetryAfterSeconds();
    }
    reply.call_id = admission->call_id;
    return reply;
  }
  ReadyCall call;
  call.call_id = admission->call_id;
  call.request = request;
  call.tool = tool;
  audit::Receipt& receipt = call.receipt;
  receipt.call_id = call.call_id;
  receipt.parent_id = request.parent_id;
  receipt.session_id = request.session_id;
  receipt.tenant = request.tenant.name();
  receipt.agent = request.agent;
  receipt.user = request.user;
  receipt.tool = request.tool;
  receipt.tool_version = manifest.tool.version;
  receipt.manifest_hash = tool->hash;
  receipt.effect = policy::EffectName(manifest.tool.effect);
  receipt.args_hash = args_hash;
  receipt.args_redacted = Redact(*args);
  receipt.requested_at = store_.Now();

  // evaluate
  std::string workspace;
  if (!request.session_id.empty()) {
    Result<std::optional<store::Session>> session =
        store::FindSession(store_, request.tenant, request.session_id);
    if (!session.ok() || !*session) {
      return RefuseAdmitted(store_, request, receipt, ToolRefusal::kFailed,
                            Internal("internal", "the session is gone"));
    }
    workspace = options_.sessions + "/" + (*session)->workspace;
  }
  Result<Decision> decision = Evaluate(*tool, *args, workspace);
  if (!decision.ok()) {
    return RefuseAdmitted(store_, request, receipt, ToolRefusal::kUnprocessable, decision.error());
  }
  call.run = std::move(decision->run);
  call.stdin_text = std::move(decision->stdin_text);
  if (!request.parent_id.empty()) {
    // A call that a call makes has at most what its maker has.
    const std::optional<policy::Envelope> parent = RunningEnvelope(request.parent_id);
    Result<policy::Envelope> narrowed =
        !parent ? Result<policy::Envelope>(
                      Refused("policy.parent", "the parent call does not run here"))
                : policy::Intersect(*parent, call.run.envelope);
    if (!narrowed.ok()) {
      return RefuseAdmitted(store_, request, receipt, ToolRefusal::kDenied, narrowed.error());
    }
    call.run.envelope = std::move(narrowed).value();
  }
  receipt.envelope_id = policy::EnvelopeId(call.run.envelope);
  receipt.blast_radius = decision->blast_radius;
  if (request.dry_run) {
    ToolReply reply =
        RefuseAdmitted(store_, request, receipt, ToolRefusal::kNone,
                       Refused("policy.dry_run", "it would be allowed; nothing was run"));
    reply.outcome = "success";
    reply.error_class.clear();
    reply.error_message.clear();
    reply.denials.clear();
    reply.stdout_text = "it " + receipt.blast_radius + "\n";
    return reply;
  }

  // record: nothing happens that is not on disk before
  store::CallDecision record;
  record.tool_version = receipt.tool_version;
  record.manifest_hash = receipt.manifest_hash;
  record.envelope_id = receipt.envelope_id;
  record.effect = receipt.effect;
  record.args_redacted = PrintJson(Json(receipt.args_redacted));
  Result<store::Supervisor> supervisor = store::ThisProcess();
  Status recorded = supervisor.ok() ? store::RecordAndStartCall(store_, request.tenant,
                                                                call.call_id, record, *supervisor)
                                    : Status(supervisor.error());
  if (!recorded.ok()) {
    return RefuseAdmitted(store_, request, receipt, ToolRefusal::kFailed, recorded.error());
  }
  const std::lock_guard lock(mutex_);
  running_[call.call_id] = call.run.envelope;
  return call;
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
  store::CallEnd end;
  if (!ran.ok()) {
    // It may have run, wholly or in part: nobody knows, and it is never run again on its own.
    audit::Receipt receipt = call.receipt;
    receipt.outcome = reply.outcome = "unknown";
    receipt.error_class = reply.error_class = "internal";
    receipt.error_message = reply.error_message = kNobodyKnows;
    receipt.finished_at = store_.Now();
    receipt.duration = receipt.finished_at - receipt.requested_at;
    reply.refusal = ToolRefusal::kFailed;
    reply.receipt = audit::FormatReceipt(receipt);
    FillEnd(reply, end);
    (void)store::LoseCall(store_, call.request.tenant, call.call_id, end);
    return reply;
  }
  const audit::Receipt receipt = Merge(call.receipt, std::move(ran).value());
  reply.outcome = receipt.outcome;
  reply.error_class = receipt.error_class;
  reply.error_message = receipt.error_message;
  reply.hint = collected.report->error ? collected.report->error->hint : "";
  reply.exit_code = receipt.exit_code;
  reply.exit_signal = receipt.exit_signal;
  reply.denials = receipt.denials;
  reply.receipt = audit::FormatReceipt(receipt);
  FillEnd(reply, end);
  end.cpu = Nanos(UsedOf(receipt, "cpu"));
  end.bytes_out = receipt.output_bytes;
  if (Status wrote = store::FinishCall(store_, call.request.tenant, call.call_id, end);
      !wrote.ok()) {
    // It ran; that its end cannot be written must not look like success.
    ToolReply failed = Failed(wrote.error());
    failed.call_id = call.call_id;
    failed.outcome = "unknown";
    failed.receipt = reply.receipt;
    return failed;
  }
  return reply;
}

ToolReply Ladder::DescendUnlaunched(const ReadyCall& call, const Error& error) {
  audit::Receipt receipt;
  receipt.outcome = "error";
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
