// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_audit.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "audit/log.h"
#include "audit/seal.h"
#include "audit/story.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/audit_flags.h"
#include "cli/state.h"
#include "cli/text_verb.h"
#include "store/call_list.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kUsage =
    R"(The record: what was believed, decided and done, and the proof that nobody edited it since.

Usage:
  coffer audit list [filters] [--limit N] [--cursor ID]   calls, newest first
  coffer audit show CALL                  one call as a story: who, what, denials, output, the ladder with times
  coffer audit chain ID                   a call, its callers and what it called, or a session or trace, as a tree
  coffer audit tail [--tenant T] [--last N]   the log as it grows; Ctrl-C ends it
  coffer audit verify [--log DIR] [--key FILE] [--checkpoint FILE] [--log-only]   the whole log, and the store against it
  coffer audit verify-receipt FILE --key FILE   one receipt, with nothing but the public key
  coffer audit checkpoint                 the newest signed checkpoint: keep it elsewhere, and compare later
  coffer audit key                        the public key
  coffer audit export --format jsonl|ocsf|otlp [filters]   one document a line, oldest first
  coffer audit prune --older-than AGE [--tenant T]   forget receipts that are older; the log keeps their hashes

Filters:
  --tenant T, --tool NAME, --agent NAME, --session ID, --trace ID
  --outcome success|error|denied|terminated|unknown, --class policy.schema, --denied, --approval STATE
  --since TIME, --until TIME    2h (ago), 2026-01-31, 2026-01-31T12:00:00Z

  --json        everything as JSON
  --state DIR   the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)

Exit status: 0 good, 1 verification found something, 120 refused, 125 failed.
)";

constexpr call::FlagSpec kFlags[] = {
    {"--tenant", true},   {"--tool", true},      {"--agent", true},  {"--session", true},
    {"--trace", true},    {"--outcome", true},   {"--class", true},  {"--denied", false},
    {"--approval", true}, {"--since", true},     {"--until", true},  {"--limit", true},
    {"--cursor", true},   {"--log", true},       {"--key", true},    {"--checkpoint", true},
    {"--last", true},     {"--log-only", false}, {"--format", true}, {"--older-than", true}};

Json CallJson(const store::Call& call) {
  const auto text = [](const std::string& value) {
    return value.empty() ? Json(nullptr) : Json(value);
  };
  const auto time = [](const std::optional<Nanos>& at) {
    return at ? Json(FormatTime(*at)) : Json(nullptr);
  };
  return {{"call_id", call.id},
          {"tenant", call.tenant.name()},
          {"agent", text(call.agent)},
          {"user", text(call.user)},
          {"tool", call.tool},
          {"tool_version", text(call.tool_version)},
          {"session_id", text(call.session_id)},
          {"parent_id", text(call.parent_id)},
          {"trace_id", text(call.trace_id)},
          {"state", store::CallStateName(call.state)},
          {"outcome", call.outcome ? Json(store::OutcomeName(*call.outcome)) : Json(nullptr)},
          {"error_class", text(call.error_class)},
          {"error_message", text(call.error_message)},
          {"denials", call.denials},
          {"approval", text(call.approval)},
          {"requested_at", FormatTime(call.requested_at)},
          {"started_at", time(call.started_at)},
          {"finished_at", time(call.finished_at)},
          {"log_index", call.log_index ? Json(*call.log_index) : Json(nullptr)}};
}

std::string OutcomeOf(const store::Call& call) {
  return std::string(call.outcome ? store::OutcomeName(*call.outcome)
                                  : store::CallStateName(call.state));
}

Result<std::string> List(const call::VerbFlags& flags, State& state) {
  TRY_ASSIGN(const AuditFilter filter, ReadAuditFilter(flags));
  store::PageRequest page;
  page.cursor = flags.Value("--cursor");
  if (flags.Has("--limit")) {
    TRY_ASSIGN(page.limit, ParseCount(flags.Value("--limit")));
  }
  TRY_ASSIGN(const store::Page<store::Call> calls, ListFiltered(state.store(), filter, page));
  if (flags.json()) {
    Json list = Json::array();
    for (const store::Call& call : calls.rows) {
      list.push_back(CallJson(call));
    }
    return PrintJson(Json{{"calls", std::move(list)},
                          {"next", calls.next.empty() ? Json(nullptr) : Json(calls.next)}},
                     2) +
           "\n";
  }
  std::string text = fmt::format("{:<24}  {:<36}  {:<10}  {:<12}  {:<16}  {:<10}  {}\n",
                                 "REQUESTED", "CALL", "TENANT", "AGENT", "TOOL", "OUTCOME", "WHY");
  for (const store::Call& call : calls.rows) {
    text +=
        fmt::format("{:<24}  {:<36}  {:<10}  {:<12}  {:<16}  {:<10}  {}\n",
                    FormatTime(call.requested_at), call.id, call.tenant.name(),
                    Printable(call.agent), Printable(call.tool), OutcomeOf(call), call.error_class);
  }
  if (!calls.next.empty()) {
    text += fmt::format("\nthere are more: --cursor {}\n", calls.next);
  }
  return text;
}

Result<std::string> Show(const call::VerbFlags& flags, State& state, const std::string& id) {
  TRY_ASSIGN(const store::Call call, FindAnyCall(state.store(), id));
  TRY_ASSIGN(const std::optional<std::string> receipt,
             store::FindReceipt(state.store(), call.tenant, id));
  if (!receipt) {
    if (flags.json()) {
      return PrintJson(Json{{"call", CallJson(call)}, {"receipt", nullptr}, {"seal", nullptr}}, 2) +
             "\n";
    }
    return fmt::format("Call {} of {}: {}; it has no receipt yet\n", call.id, Printable(call.tool),
                       OutcomeOf(call));
  }
  const Status sealed = audit::VerifyReceipt(*receipt, state.recorder().log().public_key());
  const std::string seal = sealed.ok()
                               ? "its seal is good: nothing in it was changed since it was written"
                               : "ITS SEAL IS BROKEN: " + sealed.error().message;
  if (flags.json()) {
    TRY_ASSIGN(const Json parsed, ParseJson(*receipt));
    return PrintJson(Json{{"call", CallJson(call)},
                          {"receipt", parsed},
                          {"seal", sealed.ok() ? "good" : "broken"}},
                     2) +
           "\n";
  }
  return audit::TellStory(*receipt, seal);
}

// A tree of calls, drawn or as nested JSON.
class Tree {
 public:
  Tree(store::Store& store, const std::string& mark) : store_(store), mark_(mark) {}

  Status Draw(const store::Call& call, const std::string& indent, bool last, int depth,
              Json& json) {
    const bool top = depth == 0;
    text_ += fmt::format("{}{}{}  {}  {}{}{}\n", indent,
                         top    ? ""
                         : last ? "`-- "
                                : "|-- ",
                         call.id, Printable(call.tool), OutcomeOf(call),
                         call.error_class.empty() ? "" : " (" + call.error_class + ")",
                         call.id == mark_ ? "   <--" : "");
    json = CallJson(call);
    json["children"] = Json::array();
    if (depth >= 64) {
      return {};
    }
    TRY_ASSIGN(const std::vector<store::Call> children,
               store::ChildCalls(store_, call.tenant, call.id));
    for (size_t i = 0; i < children.size(); ++i) {
      Json child;
      TRY(Draw(children[i],
               indent + (top    ? ""
                         : last ? "    "
                                : "|   "),
               i + 1 == children.size(), depth + 1, child));
      json["children"].push_back(std::move(child));
    }
    return {};
  }
  const std::string& text() const { return text_; }

 private:
  store::Store& store_;
  const std::string mark_;
  std::string text_;
};

// The calls without a parent that the id stands for: of a call its topmost caller, of a session or trace all of them.
Result<std::vector<store::Call>> FindRoots(store::Store& store, const std::string& id) {
  if (const Result<store::Call> call = FindAnyCall(store, id); call.ok()) {
    store::Call top = *call;
    for (int depth = 0; depth < 64 && !top.parent_id.empty(); ++depth) {
      TRY_ASSIGN(std::optional<store::Call> parent,
                 store::FindCall(store, top.tenant, top.parent_id));
      if (!parent) {
        break;  // pruned: the rest is still a tree
      }
      top = std::move(*parent);
    }
    return std::vector<store::Call>{std::move(top)};
  }
  std::vector<store::Call> roots;
  store::CallFilter by_session;
  by_session.session_id = id;
  store::CallFilter by_trace;
  by_trace.trace_id = id;
  for (const store::CallFilter& filter : {by_session, by_trace}) {
    TRY_ASSIGN(const store::Page<store::Call> found,
               store::ListCalls(store, store::AllTenants{}, filter, {1000, ""}));
    for (auto call = found.rows.rbegin(); call != found.rows.rend(); ++call) {
      if (call->parent_id.empty()) {
        roots.push_back(*call);
      }
    }
  }
  if (roots.empty()) {
    return Refused("policy.call", "there is no call, session or trace " + Printable(id),
                   "`coffer audit list` names calls");
  }
  return roots;
}

Result<std::string> Chain(const call::VerbFlags& flags, State& state, const std::string& id) {
  TRY_ASSIGN(const std::vector<store::Call> roots, FindRoots(state.store(), id));
  Tree tree(state.store(), id);
  Json list = Json::array();
  for (const store::Call& root : roots) {
    Json json;
    TRY(tree.Draw(root, "", true, 0, json));
    list.push_back(std::move(json));
  }
  return flags.json() ? PrintJson(Json{{"calls", std::move(list)}}, 2) + "\n" : tree.text();
}

Result<std::string> Prune(const call::VerbFlags& flags, State& state) {
  TRY_ASSIGN(const Nanos age, ParseDuration(flags.Value("--older-than")));
  TRY_ASSIGN(const AuditFilter filter, ReadAuditFilter(flags));
  store::Retention retention;
  retention.calls = age;
  TRY_ASSIGN(const std::vector<store::Tenant> tenants,
             store::ListTenants(state.store(), store::AllTenants{}));
  uint64_t calls = 0;
  for (const store::Tenant& tenant : tenants) {
    if (filter.tenant && tenant.id != *filter.tenant) {
      continue;
    }
    for (uint64_t gone = 1; gone > 0; calls += gone) {
      TRY_ASSIGN(const store::Pruned pruned, state.recorder().Prune(tenant.id, retention));
      gone = pruned.calls;
    }
  }
  return flags.json() ? PrintJson(Json{{"calls", calls}}) + "\n"
                      : fmt::format("{} calls were forgotten; the log keeps their hashes\n", calls);
}

Result<std::string> Act(const call::VerbFlags& flags) {
  const std::vector<std::string>& given = flags.words();
  const std::string& what = given[0];
  if (what == "verify" && given.size() == 1) {
    return AuditVerify(flags);
  }
  if (what == "verify-receipt" && given.size() == 2) {
    return AuditVerifyReceipt(flags);
  }
  if (what == "export" && given.size() == 1) {
    return AuditExport(flags);
  }
  if (what == "tail" && given.size() == 1) {
    return AuditTail(flags);
  }
  TRY_ASSIGN(State state, State::Open(flags));
  if (what == "list" && given.size() == 1) {
    return List(flags, state);
  }
  if (what == "show" && given.size() == 2) {
    return Show(flags, state, given[1]);
  }
  if (what == "chain" && given.size() == 2) {
    return Chain(flags, state, given[1]);
  }
  if (what == "checkpoint" && given.size() == 1) {
    return state.recorder().log().Checkpoint();
  }
  if (what == "key" && given.size() == 1) {
    return state.recorder().log().public_key().Text() + "\n";
  }
  if (what == "prune" && given.size() == 1 && flags.Has("--older-than")) {
    return Prune(flags, state);
  }
  return Refused("policy.usage", "coffer audit does not take this",
                 "`coffer audit --help` lists what it does");
}

}  // namespace

int AuditVerb(std::span<const std::string_view> words) {
  return RunTextVerb("audit", kUsage, kFlags, words, Act);
}

}  // namespace coffer::cli
