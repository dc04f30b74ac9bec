// SPDX-License-Identifier: Apache-2.0
//
// What each rung before the boundary does; ladder.cc has their order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "call/asked.h"
#include "call/host_budget.h"
#include "call/ladder.h"
#include "call/outer_call.h"
#include "call/redact.h"
#include "call/refusals.h"
#include "call/replay.h"
#include "call/request_terms.h"
#include "call/run/run_profile.h"
#include "call/workspace_room.h"
#include "policy/blast_radius.h"
#include "policy/manifest/hash.h"
#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"
#include "policy/narrowing.h"
#include "policy/scrub.h"

namespace coffer::call {
namespace {

// Of the agent too: a key belongs to the tenant, but one agent must not get the answer of another.
std::string RequestHash(const ToolRequest& request, const std::string& args_hash) {
  const store::CallIdentity& by = request.identity;
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", by.agent, by.tool, args_hash,
                                 by.session_id, by.parent_id, request.dry_run);
  if (request.background || !request.limits_json.empty()) {
    text += fmt::format("\n{}\n{}\n{}", request.background, fmt::join(request.ports, ","),
                        request.limits_json);
  }
  if (request.without_network) {
    text += "\nwithout network";
  }
  return HashOf(text);
}

// Every caller may list the tools, so naming one tells nothing new.
std::string ToolInsteadOf(const std::string& name, const ToolShelf& shelf) {
  const std::vector<ShelfEntry> entries = shelf.List();
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const ShelfEntry& entry : entries) {
    if (entry.tool != nullptr) {
      names.push_back(entry.name);
    } else if (entry.name == name) {
      return "its manifest does not load: `coffer tools list` says why";
    }
  }
  const std::string_view nearest = policy::NearestWord(name, names);
  return nearest.empty() ? "`coffer tools list` names them, and so does GET /v1/tools"
                         : fmt::format("did you mean {}?", nearest);
}

// An action that cannot be taken back must not happen twice because an answer was lost.
bool LacksKey(const policy::Manifest& manifest, const ToolRequest& request) {
  return manifest.NeedsIdempotencyKey() && request.idempotency_key.empty() && !request.dry_run;
}

}  // namespace

Ladder::Asked Ladder::Describe(const ToolRequest& request) const {
  Asked asked{.args = ParseJson(request.args_json)};
  asked.call.request = request;
  if (request.outer == nullptr || request.outer->offered) {
    asked.call.tool = shelf_.Find(request.identity.tool);
  }
  store::AdmitRequest& admit = asked.admit;
  const std::string exactly =
      recorder_.Fingerprint(asked.readable() ? PrintJson(*asked.args) : request.args_json);
  admit.identity = request.identity;
  if (asked.call.tool == nullptr) {
    admit.identity.tool = policy::ScrubText(request.identity.tool);  // it may be anything
  }
  admit.identity.reason = policy::ScrubText(request.identity.reason);
  admit.args_hash = request.dry_run ? "" : exactly;  // a dry run cannot fail
  admit.idempotency_key = request.dry_run ? "" : request.idempotency_key;
  admit.request_hash = RequestHash(request, exactly);
  admit.max_depth = options_.max_depth;
  admit.quotas = options_.quotas ? options_.quotas(request.identity.tenant) : store::Quotas{};
  admit.requested_at = store_.Now();
  asked.call.receipt.identity = admit.identity;
  asked.call.receipt.requested_at = admit.requested_at;
  asked.call.receipt.rehearsed = request.dry_run;
  return asked;
}

std::optional<ToolReply> Ladder::Understand(Asked& asked) {
  audit::Receipt& receipt = asked.call.receipt;
  if (const std::string& role = asked.call.request.role_denied; !role.empty()) {
    return RefuseUnadmitted(
        asked,
        ReplyOf(ToolRefusal::kDenied, Refused("policy.role", "the role " + role + " calls no tools",
                                              "use a key with the role agent or operator")));
  }
  if (!asked.readable()) {
    return RefuseUnadmitted(asked,
                            ReplyOf(ToolRefusal::kInvalid,
                                    Refused("policy.args", "the arguments are not one JSON object",
                                            "write them as {\"name\": value}")));
  }
  receipt.args_hash = HashOf(PrintJson(policy::ScrubJson(*asked.args)));
  receipt.args_redacted = RedactArgs(*asked.args);
  const policy::Tool* const tool = asked.call.tool.get();
  if (tool == nullptr) {
    return RefuseUnadmitted(
        asked, ReplyOf(ToolRefusal::kNotFound,
                       Refused("policy.tool",
                               "there is no tool called " + Printable(receipt.identity.tool),
                               ToolInsteadOf(receipt.identity.tool, shelf_))));
  }
  receipt.tool_version = tool->manifest.tool.version;
  receipt.manifest_hash = tool->hash;
  receipt.effect = policy::EffectName(tool->manifest.tool.effect);
  asked.admit.quotas.tool = tool->manifest.rate;
  asked.admit.quotas.retry_cooldown = tool->manifest.retry;
  if (LacksKey(tool->manifest, asked.call.request)) {
    return RefuseUnadmitted(
        asked,
        ReplyOf(ToolRefusal::kInvalid,
                Refused("policy.idempotency",
                        fmt::format("a call of {} ({}) needs an idempotency key",
                                    receipt.identity.tool, receipt.effect),
                        "send a UUID of your own for each action, and the same one when you retry: "
                        "the header Idempotency-Key, or `coffer call --idempotency-key`")));
  }
  return std::nullopt;
}

std::optional<ToolReply> Ladder::FindWorkspace(Asked& asked) {
  const store::CallIdentity& by = asked.call.request.identity;
  if (by.session_id.empty()) {
    return std::nullopt;
  }
  Result<std::optional<store::Session>> found =
      store::FindSession(store_, by.tenant, by.session_id);
  if (!found.ok()) {
    return FailedReply(found.error());
  }
  // Admission refuses an ended session and one of another agent; their files may be gone.
  if (*found && (*found)->agent == by.agent && !(*found)->ended_at) {
    asked.session = std::move(*found);
    asked.workspace = options_.sessions + "/" + asked.session->workspace;
  }
  return std::nullopt;
}

std::optional<ToolReply> Ladder::EvaluateArgs(Asked& asked) {
  const Nanos began = BootTime();
  asked.evaluation = Evaluate(*asked.call.tool, *asked.args, {asked.workspace, options_.project});
  if (asked.evaluation.ok()) {
    if (Status narrowed = NarrowByProjectFile(asked.evaluation->run); !narrowed.ok()) {
      asked.evaluation = std::move(narrowed.error());
    }
  }
  if (asked.evaluation.ok()) {
    if (Status terms = ApplyTerms(*asked.call.tool, asked.call.request, asked.evaluation->run);
        !terms.ok()) {
      asked.evaluation = std::move(terms.error());
    } else if (asked.call.request.without_network) {
      asked.evaluation->blast_radius = policy::Sentence(policy::ComputeBlastRadius(
          asked.evaluation->run.envelope, {}, {}, asked.call.tool->manifest.tool.effect));
    }
  }
  if (options_.evaluated) {
    options_.evaluated(asked.admit.identity.tenant, BootTime() - began);
  }
  asked.admit.invalid = !asked.evaluation.ok();
  if (asked.evaluation.ok() && asked.session && options_.project.empty()) {
    if (const Status room = NarrowToWorkspace(asked.workspace, *asked.session,
                                              asked.evaluation->run.envelope.limits);
        !room.ok()) {
      return FailedReply(room.error());
    }
  }
  return std::nullopt;
}

std::optional<ToolReply> Ladder::CheckHost(Asked& asked) {
  // What is owed to the log goes first, and until it is written nothing new begins.
  if (const Status owed = recorder_.WritePending(); !owed.ok()) {
    return FailedReply(owed.error());
  }
  if (const Status room = options_.may_begin ? options_.may_begin() : Status(); !room.ok()) {
    return FailedReply(room.error());
  }
  // A repetition needs no place on this host: admission answers it, whatever runs.
  const Result<std::optional<store::Admission>> repeated =
      store::FindRepetition(store_, asked.admit);
  if (!repeated.ok()) {
    return FailedReply(repeated.error());
  }
  if (!*repeated) {
    std::optional<ToolReply> later = RefuseLater(asked.admit.identity.tenant);
    if (later && !MayRun(asked)) {
      return RefuseUnadmitted(asked, std::move(*later));
    }
  }
  if (options_.budget == nullptr || !asked.evaluation.ok() || asked.call.request.dry_run ||
      *repeated) {
    return std::nullopt;
  }
  const RunRequest& run = asked.evaluation->run;
  const uint64_t memory = run.envelope.limits.memory + (run.tools.empty() ? 0 : kRelayMemory);
  HostBudget::Answer taken = options_.budget->Take(asked.admit.identity.tenant, memory);
  if (taken.seat == nullptr) {
    ToolReply reply =
        ReplyOf(ToolRefusal::kRateLimited, Refused("policy.host", taken.reason, "try again later"));
    reply.retry_after_seconds = 1;
    return RefuseUnadmitted(asked, std::move(reply));
  }
  asked.call.seat = std::move(taken.seat);
  return std::nullopt;
}

std::optional<ToolReply> Ladder::Admit(Asked& asked) {
  const Result<store::Admission> admission = store::AdmitCall(store_, asked.admit);
  if (!admission.ok()) {
    return FailedReply(admission.error());
  }
  std::string target;
  store::CallIdentity& identity = asked.call.receipt.identity;
  switch (admission->verdict) {
    case store::AdmitVerdict::kAdmitted:
      identity.call_id = admission->call_id;
      asked.call.request.identity = identity;
      return std::nullopt;
    case store::AdmitVerdict::kReplay:
      return Replay(recorder_, asked.call.request, asked.call.receipt.args_hash, *admission);
    case store::AdmitVerdict::kInFlight: {
      ToolReply reply = ReplyOf(*admission);
      reply.call_id = admission->call_id;  // a repetition: the call that it repeats has the receipt
      return reply;
    }
    // The session or parent is missing or another agent's: the receipt leaves its id out, the denial names it.
    case store::AdmitVerdict::kNoSession:
      target = "session " + Printable(std::exchange(identity.session_id, {}));
      break;
    case store::AdmitVerdict::kNoParent:
      target = "call " + Printable(std::exchange(identity.parent_id, {}));
      break;
    default:
      break;
  }
  return RefuseUnadmitted(asked, ReplyOf(*admission), target);
}

std::optional<ToolReply> Ladder::Decide(Asked& asked) {
  ReadyCall& call = asked.call;
  if (!asked.evaluation.ok()) {
    const std::vector<GivenWord> given = WordsOf(*asked.args);
    Error error = std::move(asked.evaluation.error());
    error.message = TakeOut(given, std::move(error.message));
    error.hint = TakeOut(given, std::move(error.hint));
    return Refuse(Ending::kRefused, call.receipt, ToolRefusal::kUnprocessable, error,
                  HostWordsOf(*call.tool, asked.workspace));
  }
  call.run = std::move(asked.evaluation->run);
  call.stdin_text = std::move(asked.evaluation->stdin_text);
  if (const Status fits = FitIntoParent(call.request, call.run); !fits.ok()) {
    return Refuse(Ending::kRefused, call.receipt, ToolRefusal::kDenied, fits.error(),
                  HostWordsOf(call.run));
  }
  asked.envelope = policy::CanonicalForm(call.run.envelope);
  call.receipt.envelope_id = HashOf(asked.envelope);
  call.receipt.blast_radius = asked.evaluation->blast_radius;
  return std::nullopt;
}

std::optional<ToolReply> Ladder::Rehearse(Asked& asked) {
  if (!asked.call.request.dry_run) {
    return std::nullopt;
  }
  ToolReply reply = Refuse(Ending::kRefused, asked.call.receipt, ToolRefusal::kNone,
                           Refused("policy.dry_run", "it would be allowed; nothing was run"), {});
  reply.outcome = "success";
  reply.error_class.clear();
  reply.error_message.clear();
  reply.denials.clear();
  reply.operator_message = "it " + asked.call.receipt.blast_radius + "\n";
  reply.stdout_text = HideHostWords(HostWordsOf(asked.call.run), reply.operator_message);
  return reply;
}

std::optional<ToolReply> Ladder::Record(Asked& asked) {
  if (const Status recorded =
          recorder_.Start(asked.call.receipt, {asked.call.tool->form, std::move(asked.envelope)});
      !recorded.ok()) {
    return Refuse(Ending::kRefusedForNow, asked.call.receipt, ToolRefusal::kFailed,
                  recorded.error(), HostWordsOf(asked.call.run));
  }
  const std::lock_guard lock(mutex_);
  running_[asked.call.call_id()] = asked.call.run.envelope;
  return std::nullopt;
}

ToolReply Ladder::Refuse(Ending ending, audit::Receipt receipt, ToolRefusal refusal,
                         const Error& error, const std::vector<HostWord>& words) {
  ToolReply reply = ReplyOf(refusal, error);
  reply.call_id = receipt.identity.call_id;
  FillRefusal(error, store_.Now(), receipt.identity.tool, receipt, reply);
  SayToAgent(words, refusal == ToolRefusal::kFailed ? Mentions::kAny : Mentions::kNamed, reply);
  if (const Status wrote = recorder_.End(ending, receipt, reply); !wrote.ok()) {
    return FailedReply(wrote.error());
  }
  return reply;
}

// The log keeps all that it is given, so a tenant that is refused too often is answered before anything of it is recorded.
std::optional<ToolReply> Ladder::RefuseLater(const store::TenantId& tenant) const {
  const Nanos wait = recorder_.WaitToRefuse(tenant);
  if (wait <= Nanos(0)) {
    return std::nullopt;
  }
  store::Admission later;
  later.verdict = store::AdmitVerdict::kRateLimited;
  later.error_class = "policy.rate";
  later.reason =
      "so many requests of this tenant were refused that only their number is recorded now; "
      "requests that are allowed run meanwhile";
  later.retry_after = wait;
  return ReplyOf(later);
}

ToolReply Ladder::RefuseUnadmitted(const Asked& asked, ToolReply reply, const std::string& target) {
  store::AdmitRequest admit = asked.admit;
  audit::Receipt receipt = asked.call.receipt;
  admit.identity = receipt.identity;
  if (std::optional<ToolReply> later = reply.refusal == ToolRefusal::kRateLimited
                                           ? std::nullopt
                                           : RefuseLater(admit.identity.tenant)) {
    reply = std::move(*later);
  }
  if (reply.refusal != ToolRefusal::kRateLimited) {
    // It takes from the rates like any other request: they bound how many of its kind are written.
    const Result<std::optional<store::Admission>> spent = store::ChargeRefusal(store_, admit);
    if (!spent.ok()) {
      return FailedReply(spent.error());
    }
    if (*spent) {
      reply = ReplyOf(ToolRefusal::kRateLimited, Refused((*spent)->error_class, (*spent)->reason));
      reply.retry_after_seconds = (*spent)->RetryAfterSeconds();
    }
  }
  FillRefusal(Refused(reply.error_class, reply.error_message, reply.hint), store_.Now(),
              target.empty() ? receipt.identity.tool : target, receipt, reply);
  if (const Status wrote = recorder_.Refuse(admit, std::move(receipt), reply); !wrote.ok()) {
    return FailedReply(wrote.error());
  }
  return reply;
}

Result<policy::Envelope> Ladder::ParentEnvelope(const ToolRequest& request) {
  if (request.outer != nullptr) {
    return request.outer->spent ? Result<policy::Envelope>(*request.outer->spent)
                                : request.outer->envelope;
  }
  const std::string& call_id = request.identity.parent_id;
  if (options_.outer_call) {
    if (std::optional<Result<policy::Envelope>> outer = options_.outer_call(call_id)) {
      return std::move(*outer);
    }
  }
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(call_id);
  if (found == running_.end()) {
    return Refused("policy.parent", "the parent call is not running here");
  }
  return found->second;
}

Status Ladder::FitIntoParent(const ToolRequest& request, RunRequest& run) {
  if (!request.identity.parent_id.empty()) {
    TRY(NarrowToParent(request, run));
  }
  if (!run.tools.empty() && !options_.offers_tools) {
    return Refused("policy.calls",
                   "this program does not serve the tools of [calls] inside a call");
  }
  return {};
}

// A call that Decide or Rehearse ends is already admitted and has its own record.
bool Ladder::MayRun(const Asked& asked) {
  if (!asked.evaluation.ok() || asked.call.request.dry_run) {
    return false;
  }
  RunRequest run = asked.evaluation->run;
  return FitIntoParent(asked.call.request, run).ok();
}

Status Ladder::NarrowToParent(const ToolRequest& request, RunRequest& run) {
  TRY_ASSIGN(const policy::Envelope parent, ParentEnvelope(request));
  TRY_ASSIGN(policy::Envelope narrowed, policy::Intersect(parent, run.envelope));
  if (const std::vector<std::string> lost = policy::LostMounts(run.envelope, narrowed);
      !lost.empty()) {
    return Refused("policy.narrow",
                   fmt::format("the call that makes this one does not have what the tool mounts at "
                               "{}",
                               Printable(fmt::format("{}", fmt::join(lost, ", ")))),
                   "a call from a call has at most what the outer call has: mount the directory "
                   "there too");
  }
  if (narrowed.network.empty() && !run.envelope.network.empty()) {
    return Refused("policy.narrow",
                   "the call that makes this one reaches none of the hosts that the tool reaches",
                   "call the tool from outside");
  }
  run.envelope = std::move(narrowed);
  if (request.outer != nullptr) {
    run.parent = request.identity.parent_id;
    run.tool_calls = std::min(run.tool_calls, request.outer->tool_calls);
  }
  return {};
}

}  // namespace coffer::call
