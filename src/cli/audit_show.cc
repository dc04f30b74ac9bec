// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit show` and `object`: one call, what it ran, and what it was allowed.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "audit/story.h"
#include "base/json.h"
#include "base/text.h"
#include "call/transcript.h"
#include "cli/audit_flags.h"
#include "cli/text_verb.h"
#include "cli/verb_audit.h"
#include "store/objects.h"

namespace coffer::cli {
namespace {

// An object as JSON; the hash of its one canonical line is its name.
Result<std::string> TellObject(const std::optional<std::string>& object, std::string_view hash) {
  if (!object) {
    return Refused("record.object", fmt::format("there is no object {}", Printable(hash)),
                   "it was forgotten with its calls, or they were made before objects were kept");
  }
  TRY_ASSIGN(const Json json, ParseJson(*object));
  return PrintJson(json, 2) + "\n";
}

Result<std::string> ShowObject(const call::VerbFlags& flags, State& state,
                               const store::Call& call) {
  const std::string& hash = flags.Has("--manifest") ? call.manifest_hash : call.envelope_id;
  if (hash.empty()) {
    return Refused("record.object", "this call has none",
                   "`coffer run` has no manifest; a call that was refused early has no envelope");
  }
  TRY_ASSIGN(const std::optional<std::string> object,
             store::FindObject(state.store(), call.identity.tenant, hash));
  return TellObject(object, hash);
}

// The story, and what ran; why not, where that is not kept.
Result<std::string> TellCall(const audit::SealedCall& sealed) {
  TRY_ASSIGN(std::string story,
             audit::TellStory(sealed.receipt,
                              "its seal is good: nothing in it was changed since it was written"));
  if (sealed.transcript) {
    TRY_ASSIGN(const call::Transcript ran, call::ParseTranscript(*sealed.transcript));
    return story + call::TellTranscript(ran);
  }
  TRY_ASSIGN(const audit::Receipt receipt, audit::ParseReceipt(sealed.receipt));
  if (receipt.started_at == Nanos(0)) {
    return story;
  }
  return story + (receipt.transcript_sha256.empty()
                      ? "\n  what ran and what it printed is not kept: the tool or the tenant "
                        "says record = \"hashes\", or an earlier version recorded it\n"
                      : "\n  what ran and what it printed was forgotten in time\n");
}

}  // namespace

Json CallJson(const audit::SealedCall& sealed) {
  const store::Call& call = sealed.call;
  const auto text = [](const std::string& value) {
    return value.empty() ? Json(nullptr) : Json(value);
  };
  const bool broken = sealed.state == audit::SealState::kBroken;
  const auto time = [](const std::optional<Nanos>& at) {
    return at ? Json(FormatTime(*at)) : Json(nullptr);
  };
  return {{"call_id", call.identity.call_id},
          {"tenant", call.identity.tenant.name()},
          {"agent", text(call.identity.agent)},
          {"user", text(call.identity.user)},
          {"reason", text(call.identity.reason)},
          {"tool", text(call.identity.tool)},
          {"tool_version", text(call.tool_version)},
          {"session_id", text(call.identity.session_id)},
          {"parent_id", text(call.identity.parent_id)},
          {"trace_id", text(call.identity.trace_id)},
          {"state", store::CallStateName(call.state)},
          {"outcome", call.outcome ? Json(store::OutcomeName(*call.outcome)) : Json(nullptr)},
          {"error_class", text(call.error_class)},
          {"error_message", text(call.error_message)},
          {"denials", broken ? Json(nullptr) : Json(call.denials)},
          {"approval", text(call.approval)},
          {"requested_at", broken ? Json(nullptr) : Json(FormatTime(call.requested_at))},
          {"started_at", time(call.started_at)},
          {"finished_at", time(call.finished_at)},
          {"log_index", call.log_index ? Json(*call.log_index) : Json(nullptr)},
          {"seal", audit::SealStateName(sealed.state)},
          {"problem", text(sealed.problem)}};
}

std::string OutcomeOf(const audit::SealedCall& sealed) {
  if (sealed.state == audit::SealState::kBroken) {
    return "BROKEN";
  }
  const store::Call& call = sealed.call;
  return std::string(call.outcome ? store::OutcomeName(*call.outcome)
                                  : store::CallStateName(call.state));
}

Result<std::string> AuditObject(State& state, std::string hash) {
  if (!hash.starts_with("sha256:")) {
    hash = "sha256:" + hash;
  }
  TRY_ASSIGN(const std::optional<std::string> object,
             store::FindObject(state.store(), store::AllTenants{}, hash));
  return TellObject(object, hash);
}

Result<std::string> AuditShow(const call::VerbFlags& flags, State& state, const std::string& id) {
  TRY_ASSIGN(const store::Call call, FindAnyCall(state.store(), id));
  TRY_ASSIGN(const audit::SealedCall sealed, state.recorder().ReadSealed(call));
  Json receipt;
  if (!sealed.receipt.empty()) {
    TRY_ASSIGN(receipt, ParseJson(sealed.receipt));
  }
  if (sealed.state == audit::SealState::kGood &&
      (flags.Has("--manifest") || flags.Has("--envelope"))) {
    return ShowObject(flags, state, sealed.call);
  }
  Json transcript;
  if (sealed.transcript) {
    TRY_ASSIGN(transcript, ParseJson(*sealed.transcript));
  }
  const std::string json = PrintJson(Json{{"call", CallJson(sealed)},
                                          {"receipt", std::move(receipt)},
                                          {"transcript", std::move(transcript)},
                                          {"seal", audit::SealStateName(sealed.state)}},
                                     2) +
                           "\n";
  switch (sealed.state) {
    case audit::SealState::kGood:
      return flags.json() ? json : TellCall(sealed);
    case audit::SealState::kOpen:
      return flags.json()
                 ? json
                 : fmt::format(
                       "Call {} of {}: {}; it has no receipt yet, and nothing of "
                       "it is sealed\n",
                       call.identity.call_id, Printable(call.identity.tool), OutcomeOf(sealed));
    case audit::SealState::kBroken:
      break;
  }
  ExitWithFindings(flags.json()
                       ? json
                       : fmt::format("NOT GOOD: the stored data of call {} differs from its seal "
                                     "and is not shown: {}\n",
                                     Printable(call.identity.call_id), Printable(sealed.problem)));
}

}  // namespace coffer::cli
