// SPDX-License-Identifier: Apache-2.0
#include "daemon/views.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "call/agent_words.h"
#include "policy/blast_radius.h"
#include "policy/make_envelope.h"

namespace coffer::daemon {
namespace {

using gateway::RefusalKind;

constexpr std::chrono::seconds kRecordRetry{5};

// A denial is an answer like any other end of a call, whatever it was denied for: it has a receipt
// and a call_id of its own. The two answers of Idempotency-Key are about another call, and
// Cofferdam's own failures are about none.
bool IsDenial(const call::ToolReply& reply) {
  return reply.outcome == "denied" && !reply.call_id.empty() &&
         reply.refusal != call::ToolRefusal::kInFlight &&
         reply.refusal != call::ToolRefusal::kKeyConflict;
}

RefusalKind RefusalKindOf(call::ToolRefusal refusal) {
  switch (refusal) {
    case call::ToolRefusal::kInFlight:
      return RefusalKind::kInFlight;
    case call::ToolRefusal::kKeyConflict:
      return RefusalKind::kUnprocessable;
    default:
      return RefusalKind::kInternal;
  }
}

std::string CodeOf(const call::ToolReply& reply) {
  switch (reply.refusal) {
    case call::ToolRefusal::kInFlight:
      return "idempotency.in_flight";
    case call::ToolRefusal::kKeyConflict:
      return "idempotency.mismatch";
    default:
      return reply.error_class;
  }
}

// What failed is for the operator; the agent learns whether to come back.
void HideHost(const call::ToolReply& reply, gateway::Refusal& refusal) {
  refusal.message = "Cofferdam could not do this; its log says why";
  refusal.hint.clear();
  if (reply.error_class == call::kRecordBroken) {
    refusal = BrokenRecord(reply.call_id);
    return;
  }
  if (reply.error_class == call::kRecordUnavailable) {
    refusal.kind = RefusalKind::kUnavailable;
    refusal.message =
        "calls cannot be recorded at the moment, so none is run; the operator is told why";
    refusal.hint = "try again when /readyz answers 200";
    refusal.retry_after = kRecordRetry;
  }
}

// The files that a receipt of ours names.
std::vector<audit::ExportedFile> ExportedIn(const std::string& receipt) {
  std::vector<audit::ExportedFile> files;
  if (receipt.empty() || receipt.find("\"exported\": []") != std::string::npos) {
    return files;  // most calls export nothing, and a receipt takes long to parse
  }
  const Result<Json> json = ParseJson(receipt);
  if (!json.ok()) {
    return files;
  }
  for (const Json& file : json->value(Json::json_pointer("/files/exported"), Json::array())) {
    files.push_back(
        {file.value("path", ""), file.value("size", uint64_t{0}), file.value("sha256", "")});
  }
  return files;
}

void FillResult(const call::ToolReply& reply, gateway::CallView& view) {
  view.outcome = reply.outcome;
  view.denials = reply.denials;
  view.replayed = reply.replayed;
  view.retry_after = reply.retry_after_seconds;
  view.log = reply.log;
  view.exported = ExportedIn(reply.receipt);
  if (!reply.error_class.empty()) {
    view.error = gateway::CallError{reply.error_class, reply.error_message};
  }
  if (reply.outcome != "denied") {
    view.result = gateway::CallResult{
        reply.stdout_text, reply.stderr_text, reply.exit_code, reply.exit_signal, "",
        reply.truncated};
  }
}

}  // namespace

gateway::Refusal BrokenRecord(const std::string& call_id) {
  gateway::Refusal refusal;
  refusal.kind = RefusalKind::kInternal;
  refusal.code = call::kRecordBroken;
  refusal.message = "the stored data of this call differs from its seal, so it is not shown";
  refusal.hint = "the operator can look with `coffer audit verify`";
  refusal.call_id = call_id;
  return refusal;
}

gateway::Answer<gateway::CallView> ViewOf(const call::ToolReply& reply,
                                          const call::ToolRequest& request) {
  const bool exists = reply.admitted || reply.replayed || IsDenial(reply);
  if (!exists) {
    gateway::Refusal refusal;
    refusal.kind = RefusalKindOf(reply.refusal);
    refusal.code = CodeOf(reply);
    refusal.message = reply.error_message;
    refusal.hint = reply.hint;
    if (reply.refusal == call::ToolRefusal::kFailed) {
      HideHost(reply, refusal);
    }
    refusal.call_id = reply.call_id;
    refusal.log = reply.log;
    if (reply.retry_after_seconds) {
      refusal.retry_after = std::chrono::seconds(*reply.retry_after_seconds);
    }
    return refusal;
  }
  gateway::CallView view;
  view.identity = request.identity;
  view.identity.call_id = reply.call_id;
  view.dry_run = request.dry_run;
  FillResult(reply, view);
  return view;
}

gateway::CallView ViewOf(const store::Call& call, const std::optional<call::ToolReply>& reply) {
  gateway::CallView view;
  view.identity = call.identity;
  view.state = store::HasEnded(call.state)                ? gateway::CallProgress::kFinished
               : call.state == store::CallState::kGated   ? gateway::CallProgress::kGated
               : call.state == store::CallState::kStarted ? gateway::CallProgress::kRunning
                                                          : gateway::CallProgress::kQueued;
  view.requested_at = call.requested_at;
  view.finished_at = call.finished_at.value_or(Nanos(0));
  if (reply) {
    FillResult(*reply, view);
    view.replayed = false;
  } else if (call.outcome) {
    view.outcome = store::OutcomeName(*call.outcome);
    if (!call.error_class.empty()) {
      view.error =
          gateway::CallError{call.error_class, call::HideHostPaths({}, call.error_message)};
    }
  }
  return view;
}

gateway::SessionView ViewOf(const store::Session& session) {
  gateway::SessionView view;
  view.session_id = session.id;
  view.tenant = session.tenant;
  view.label = session.label;
  view.agent = session.agent;
  view.state = session.ended_at ? "ended" : "open";
  view.created_at = session.created_at;
  view.expires_at = session.ends_at;
  view.ended_at = session.ended_at.value_or(Nanos(0));
  view.calls = session.spent.calls;
  if (session.budget.calls != 0) {
    view.max_calls = session.budget.calls;
  }
  return view;
}

gateway::KeyView ViewOf(const store::ApiKey& key) {
  gateway::KeyView view;
  view.key_id = key.id;
  view.role = key.role;
  view.tenant = key.tenant;
  view.agent = key.agent;
  view.all_tenants = key.all_tenants;
  view.label = key.label;
  view.made_by = key.made_by;
  view.created_at = key.created_at;
  view.expires_at = key.expires_at.value_or(Nanos(0));
  view.revoked_at = key.revoked_at.value_or(Nanos(0));
  return view;
}

gateway::SwitchView ViewOf(const store::Switch& found) {
  gateway::SwitchView view;
  using Scope = gateway::SwitchTarget::Scope;
  view.target.scope = found.kind == store::SwitchKind::kAgent     ? Scope::kAgent
                      : found.kind == store::SwitchKind::kSession ? Scope::kSession
                      : found.kind == store::SwitchKind::kTenant  ? Scope::kTenant
                      : found.kind == store::SwitchKind::kBreaker ? Scope::kBreaker
                                                                  : Scope::kTool;
  view.target.name = found.name;
  view.tenant = found.tenant;
  view.reason = found.why;
  view.set_by = found.who;
  view.set_at = found.at;
  view.until = found.until.value_or(Nanos(0));
  return view;
}

gateway::ToolView ViewOf(const call::ShelfEntry& entry, ToolDetail detail, store::Role reader) {
  const bool for_agent = reader == store::Role::kAgent;
  gateway::ToolView view;
  view.name = entry.name;
  view.state = entry.state == call::ToolState::kReady ? "ready" : "stale";
  if (!entry.mistakes.empty()) {
    const size_t slash = entry.file.rfind('/');
    view.problem = policy::FormatMistake(
        slash == std::string::npos ? entry.file : entry.file.substr(slash + 1),
        entry.mistakes.front());
    view.problem = for_agent ? call::HideHostPaths({}, view.problem) : view.problem;
  }
  if (entry.tool == nullptr) {
    return view;
  }
  const policy::Manifest& manifest = entry.tool->manifest;
  view.version = manifest.tool.version;
  view.owner = manifest.tool.owner;
  view.summary = manifest.tool.summary;
  view.effect = policy::EffectName(manifest.tool.effect);
  view.manifest_hash = entry.tool->hash;
  if (detail == ToolDetail::kWhole) {
    view.input_schema_json = manifest.input_schema;
    if (Result<policy::Envelope> envelope = policy::MakeEnvelope(manifest, {}, {}); envelope.ok()) {
      for (policy::Mount& mount : envelope->mounts) {
        mount.host = for_agent ? mount.at : mount.host;
      }
      const policy::BlastRadius worst =
          policy::ComputeBlastRadius(*envelope, manifest.network, {}, manifest.tool.effect);
      view.blast_radius = policy::Sentence(worst);
      view.blast_radius_json = PrintJson(policy::ToJson(worst));
    }
  }
  return view;
}

store::SwitchKind KindOf(gateway::SwitchTarget::Scope scope) {
  using Scope = gateway::SwitchTarget::Scope;
  switch (scope) {
    case Scope::kTool:
      return store::SwitchKind::kTool;
    case Scope::kAgent:
      return store::SwitchKind::kAgent;
    case Scope::kSession:
      return store::SwitchKind::kSession;
    case Scope::kBreaker:
      return store::SwitchKind::kBreaker;
    case Scope::kTenant:
      break;
  }
  return store::SwitchKind::kTenant;
}

}  // namespace coffer::daemon
