// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/views.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/json_text.h"
#include "call/tool_call.h"
#include "gateway/http/names.h"
#include "gateway/http/problem.h"
#include "gateway/http/words.h"

namespace coffer::gateway {
namespace {

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json TimeOrNull(Nanos time) { return time.count() == 0 ? Json(nullptr) : Json(FormatTime(time)); }

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json Embedded(const std::string& text) {
  if (text.empty()) {
    return nullptr;
  }
  Result<Json> json = ParseJson(text);
  return json.ok() ? std::move(*json) : Json(nullptr);
}

void AddResult(CallView& call, JsonPieces& out) {
  if (!call.result.has_value()) {
    out.Raw("null");
    return;
  }
  CallResult& result = *call.result;
  out.Raw(R"({"stdout":)");
  out.Text(std::move(result.stdout_text));
  out.Raw(R"(,"stderr":)");
  out.Text(std::move(result.stderr_text));
  out.Raw(result.truncated ? R"(,"truncated":true)" : R"(,"truncated":false)");
  out.Raw(R"(,"exit":)");
  out.Value({{"code", OrNull(result.exit_code)}, {"signal", OrNull(result.exit_signal)}});
  out.Raw(R"(,"structured":)");
  out.Value(Embedded(result.structured_json));
  out.Raw("}");
}

Json CallErrorOf(const CallView& call) {
  if (!call.error.has_value()) {
    return nullptr;
  }
  return {{"class", call.error->error_class}, {"message", call.error->message}};
}

Json DenialsOf(const CallView& call) {
  Json denials = Json::array();
  for (const audit::Denial& denial : call.denials) {
    denials.push_back({{"surface", denial.surface},
                       {"operation", denial.operation},
                       {"target", denial.target},
                       {"rule", denial.rule},
                       {"reason", denial.reason},
                       {"fix", OrNull(denial.fix)},
                       {"count", denial.count}});
  }
  return denials;
}

Json ApprovalOf(const CallView& call) {
  if (!call.approval.has_value()) {
    return nullptr;
  }
  return {{"id", call.approval->id},
          {"digest", call.approval->digest},
          {"url", call.approval->url},
          {"expires_at", TimeOrNull(call.approval->expires_at)}};
}

// The members of every call, and then `more`.
JsonPieces CallPieces(CallView& call, const Json& more) {
  JsonPieces out;
  out.Raw(R"({"call_id":)");
  out.Value(call.identity.call_id);
  out.Raw(R"(,"outcome":)");
  out.Value(OrNull(call.outcome));
  out.Raw(R"(,"result":)");
  AddResult(call, out);
  Json rest = {
      {"error", CallErrorOf(call)}, {"denials", DenialsOf(call)}, {"log", call::LogJson(call.log)}};
  if (call.retry_after) {
    rest["retry_after"] = *call.retry_after;
  }
  rest.update(more);
  const std::string text = PrintJson(rest);
  out.Raw(",");
  out.Raw(std::string_view(text).substr(1));  // without its brace: it is ours
  return out;
}

Json SessionJson(const SessionView& session) {
  return {{"session_id", session.session_id},
          {"tenant", session.tenant.name()},
          {"agent", session.agent},
          {"label", OrNull(session.label)},
          {"state", session.state},
          {"created_at", TimeOrNull(session.created_at)},
          {"files",
           {{"max_bytes", session.max_bytes},
            {"max_files", session.max_files},
            {"enforced", session.enforced}}},
          {"expires_at", TimeOrNull(session.expires_at)},
          {"ended_at", TimeOrNull(session.ended_at)},
          {"calls", session.calls},
          {"max_calls", OrNull(session.max_calls)}};
}

Json ProcessJson(const ProcessView& process) {
  return {{"process_id", process.process_id},
          {"session_id", process.session_id},
          {"tool", process.tool},
          {"state", process.state},
          {"ports", process.ports},
          {"started_at", TimeOrNull(process.started_at)},
          {"ended_at", TimeOrNull(process.ended_at)},
          {"outcome", OrNull(process.outcome)},
          {"exit", {{"code", OrNull(process.exit_code)}, {"signal", OrNull(process.exit_signal)}}},
          {"error", process.error_class.empty() ? Json(nullptr)
                                                : Json{{"class", process.error_class},
                                                       {"message", process.error_message}}}};
}

Json FileJson(const FileView& file) {
  return {{"path", file.path},
          {"encoded_path", PercentEncodePath(file.path)},
          {"size", file.size},
          {"sha256", OrNull(file.sha256)},
          {"modified_at", TimeOrNull(file.modified_at)}};
}

// In this order. A list of hundreds of tools is what an agent asks for first, so its text is written without a value of
// the library for each member.
struct ToolMember {
  const char* name;
  std::string ToolView::* value;
  bool null_if_empty;
};
constexpr ToolMember kToolMembers[] = {
    {"name", &ToolView::name, false},      {"version", &ToolView::version, false},
    {"owner", &ToolView::owner, true},     {"summary", &ToolView::summary, false},
    {"effect", &ToolView::effect, false},  {"state", &ToolView::state, false},
    {"problem", &ToolView::problem, true}, {"manifest_hash", &ToolView::manifest_hash, true},
};

void AppendTool(const ToolView& tool, std::string* out) {
  char before = '{';
  for (const ToolMember& member : kToolMembers) {
    const std::string& value = tool.*member.value;
    out->push_back(std::exchange(before, ','));
    AppendJsonText(member.name, out);
    out->push_back(':');
    if (member.null_if_empty && value.empty()) {
      out->append("null");
    } else {
      AppendJsonText(value, out);
    }
  }
  out->push_back('}');
}

Json KeyJson(const KeyView& key) {
  return {{"key_id", key.key_id},
          {"role", RoleName(key.role)},
          {"tenant", key.tenant.name()},
          {"agent", OrNull(key.agent)},
          {"label", OrNull(key.label)},
          {"made_by", OrNull(key.made_by)},
          {"all_tenants", key.all_tenants},
          {"created_at", TimeOrNull(key.created_at)},
          {"expires_at", TimeOrNull(key.expires_at)},
          {"revoked_at", TimeOrNull(key.revoked_at)}};
}

Json AuditJson(const AuditView& call) {
  return {{"call_id", call.identity.call_id},
          {"tenant", call.identity.tenant.name()},
          {"agent", OrNull(call.identity.agent)},
          {"user", OrNull(call.identity.user)},
          {"reason", OrNull(call.identity.reason)},
          {"tool", OrNull(call.identity.tool)},
          {"session_id", OrNull(call.identity.session_id)},
          {"parent_id", OrNull(call.identity.parent_id)},
          {"trace_id", OrNull(call.identity.trace_id)},
          {"state", call.state},
          {"outcome", OrNull(call.outcome)},
          {"error_class", OrNull(call.error_class)},
          {"denials", call.denials},
          {"approval", OrNull(call.approval)},
          {"requested_at", TimeOrNull(call.requested_at)},
          {"finished_at", TimeOrNull(call.finished_at)},
          {"log_index", call.log_index ? Json(*call.log_index) : Json(nullptr)},
          {"seal", call.seal}};
}

Json AccessJson(const AccessView& access) {
  return {{"id", access.id},     {"call_id", access.call_id},     {"tenant", access.tenant.name()},
          {"tool", access.tool}, {"agent", OrNull(access.agent)}, {"host", access.host},
          {"port", access.port}, {"opens", access.opens}};
}

Json SwitchJson(const SwitchView& one) {
  return {{"scope", ScopeName(one.target.scope)},
          {"name", one.target.name},
          {"tenant", one.tenant ? Json(one.tenant->name()) : Json(nullptr)},
          {"reason", one.reason},
          {"set_by", OrNull(one.set_by)},
          {"set_at", TimeOrNull(one.set_at)},
          {"until", TimeOrNull(one.until)}};
}

// What an item of a list takes, roughly: names and times, and a path or a reason of at most a kilobyte.
constexpr size_t kItemBytes = 1024;

// {"NAME":[...], and no end. The items are taken, and each becomes text when its turn comes.
template <typename T, typename Append>
JsonPieces ListPieces(const char* name, std::vector<T>& items, Append append) {
  JsonPieces out;
  out.Raw("{");
  out.Value(name);
  out.Raw(":[");
  const size_t bytes = items.size() * kItemBytes;
  out.Items(
      [items = std::make_shared<std::vector<T>>(std::move(items)), at = size_t{0},
       append](std::string* text) mutable {
        if (at == items->size()) {
          return false;
        }
        append(std::exchange((*items)[at++], T{}), text);
        return true;
      },
      bytes);
  out.Raw("]");
  return out;
}

template <typename T>
JsonPieces ListPieces(const char* name, std::vector<T>& items, Json (*format)(const T&)) {
  return ListPieces(name, items, [format](const T& item, std::string* text) {
    *text += PrintJson(format(item));
  });
}

template <typename T>
JsonPieces WholeList(const char* name, std::vector<T>& items, Json (*format)(const T&)) {
  JsonPieces out = ListPieces(name, items, format);
  out.Raw("}");
  return out;
}

template <typename T>
JsonPieces PageOf(const char* name, Page<T>& page, Json (*format)(const T&)) {
  JsonPieces out = ListPieces(name, page.items, format);
  out.Raw(R"(,"next":)");
  out.Value(OrNull(page.next));
  out.Raw("}");
  return out;
}

}  // namespace

JsonPieces FormatCallResult(CallView& call) { return CallPieces(call, Json::object()); }

std::string FormatCallAccepted(const CallView& call) {
  if (call.state == CallProgress::kGated) {
    return PrintJson(
        {{"call_id", call.identity.call_id}, {"outcome", "gated"}, {"approval", ApprovalOf(call)}});
  }
  return PrintJson(
      {{"call_id", call.identity.call_id}, {"outcome", nullptr}, {"state", StateName(call.state)}});
}

JsonPieces FormatCall(CallView& call) {
  Json json;
  json["state"] = StateName(call.state);
  json["tool"] = call.identity.tool;
  json["reason"] = OrNull(call.identity.reason);
  json["session_id"] = OrNull(call.identity.session_id);
  json["parent_id"] = OrNull(call.identity.parent_id);
  json["dry_run"] = call.dry_run;
  json["approval"] = ApprovalOf(call);
  json["requested_at"] = TimeOrNull(call.requested_at);
  json["finished_at"] = TimeOrNull(call.finished_at);
  return CallPieces(call, json);
}

std::string FormatSession(const SessionView& session) { return PrintJson(SessionJson(session)); }
JsonPieces FormatSessions(Page<SessionView>& page) { return PageOf("sessions", page, SessionJson); }

std::string FormatProcess(const ProcessView& process) { return PrintJson(ProcessJson(process)); }
JsonPieces FormatProcesses(std::vector<ProcessView>& processes) {
  return WholeList("processes", processes, ProcessJson);
}
JsonPieces FormatProcessLog(ProcessLogView& log) {
  JsonPieces out;
  out.Raw(R"({"offset":)" + std::to_string(log.offset) + R"(,"next":)" + std::to_string(log.next) +
          R"(,"text":)");
  out.Text(std::move(log.text));
  out.Raw(log.ended ? R"(,"ended":true})" : R"(,"ended":false})");
  return out;
}

std::string FormatFile(const FileView& file) { return PrintJson(FileJson(file)); }
JsonPieces FormatFiles(Page<FileView>& page) { return PageOf("files", page, FileJson); }

std::string FormatTool(const ToolView& tool) {
  std::string text;
  AppendTool(tool, &text);
  text.pop_back();
  text += R"(,"blast_radius":)" +
          PrintJson({{"sentence", tool.blast_radius}, {"data", Embedded(tool.blast_radius_json)}});
  return text + R"(,"input_schema":)" + PrintJson(Embedded(tool.input_schema_json)) + "}";
}
JsonPieces FormatTools(std::vector<ToolView>& tools) {
  JsonPieces out = ListPieces("tools", tools, AppendTool);
  out.Raw("}");
  return out;
}

std::string FormatKey(const KeyView& key) { return PrintJson(KeyJson(key)); }
std::string FormatNewKey(const NewKey& key) {
  Json json = KeyJson(key.view);
  json["key"] = key.secret;
  return PrintJson(json);
}
JsonPieces FormatKeys(std::vector<KeyView>& keys) { return WholeList("keys", keys, KeyJson); }

JsonPieces FormatAudit(Page<AuditView>& page) { return PageOf("calls", page, AuditJson); }
JsonPieces FormatTranscriptView(TranscriptView& view) {
  JsonPieces out;
  out.Raw(R"({"call_id":)");
  out.Value(view.call_id);
  out.Raw(view.kept ? R"(,"kept":true,"transcript":)" : R"(,"kept":false,"transcript":)");
  if (Json::accept(view.transcript_json)) {
    out.RawWhole(std::move(view.transcript_json));
  } else {
    out.Raw("null");
  }
  out.Raw("}");
  return out;
}
JsonPieces FormatWhole(std::string& json_text) {
  JsonPieces out;
  out.RawWhole(std::move(json_text));
  return out;
}
std::string FormatCheckpoint(const CheckpointView& checkpoint) {
  return PrintJson({{"checkpoint", checkpoint.note}, {"key", checkpoint.key}});
}
std::string FormatAccess(const AccessView& access) { return PrintJson(AccessJson(access)); }
JsonPieces FormatAccessList(std::vector<AccessView>& waiting) {
  return WholeList("access", waiting, AccessJson);
}
std::string FormatSwitch(const SwitchView& one) { return PrintJson(SwitchJson(one)); }
JsonPieces FormatSwitches(std::vector<SwitchView>& switches) {
  return WholeList("switches", switches, SwitchJson);
}

std::string FormatReadiness(const Readiness& readiness) {
  Json checks = Json::array();
  for (const ReadinessCheck& check : readiness.checks) {
    checks.push_back({{"name", check.name}, {"ok", check.ok}, {"detail", OrNull(check.detail)}});
  }
  return PrintJson(
      {{"status", readiness.ready ? "ready" : "not ready"}, {"checks", std::move(checks)}});
}

}  // namespace coffer::gateway
