// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_audit.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "audit/log/log.h"
#include "audit/sealed_call.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/audit_flags.h"
#include "cli/state.h"
#include "cli/text_verb.h"
#include "store/call_list.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kAuditUsage =
    R"(The record: what was asked, decided and done, and the proof that it was not edited since.

Usage:
  coffer audit list [filters] [--limit N] [--cursor ID]   calls, newest first
  coffer audit show CALL                  one call as a story: who, what, denials, the ladder with times, what ran and
                                          what it printed
  coffer audit object SHA256              a manifest or envelope by the hash that receipts name
  coffer audit files CALL [PREFIX]        the files that a call exported (files.exports of its manifest)
  coffer audit fetch CALL PATH [--out FILE]   the bytes of one of them, to stdout or into a new file
  coffer audit chain ID                   a call, its callers and what it called, or a session or trace, as a tree
  coffer audit tail [--tenant T] [--last N]   the log as it grows; Ctrl-C ends it
  coffer audit verify [--log DIR] [--key FILE] [--checkpoint FILE] [--log-only]
                                          the whole log, and every row, result and receipt of the store against it;
                                          without --key it trusts the key beside the log
  coffer audit verify-receipt FILE --key FILE   one receipt, with nothing but the public key
  coffer audit checkpoint                 the newest signed checkpoint: keep it elsewhere, and compare later
  coffer audit key                        the public key
  coffer audit export --format jsonl|ocsf|otlp [filters]   one document a line, oldest first
  coffer audit prune --older-than AGE [--tenant T]   forget receipts that are older; the log keeps their hashes.
                                          What is kept all the same is counted, with the reason

Filters:
  --tenant T, --tool NAME, --agent NAME, --session ID, --trace ID
  --outcome success|error|denied|terminated|unknown, --class policy.schema, --approval STATE
  --denied                      calls that were refused
  --probed                      calls with denials in their receipts: what a program tried, or why a tool was refused
  --since TIME, --until TIME    2h (ago), 2026-01-31, 2026-01-31T12:00:00Z

  --manifest, --envelope        instead of the story of `show`: what the call was allowed, in canonical form

  --json        everything as JSON
  --state DIR   the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)

Every part of a call is compared with its sealed receipt before it is shown. A part that differs is not shown but named.
Exit status: 0 good, 1 verification found something, 120 refused, 125 failed.
)";

constexpr call::FlagSpec kAuditFlags[] = {
    {"--tenant", true},     {"--tool", true},     {"--agent", true},     {"--session", true},
    {"--trace", true},      {"--outcome", true},  {"--class", true},     {"--denied", false},
    {"--probed", false},    {"--approval", true}, {"--since", true},     {"--until", true},
    {"--limit", true},      {"--cursor", true},   {"--log", true},       {"--key", true},
    {"--checkpoint", true}, {"--last", true},     {"--log-only", false}, {"--format", true},
    {"--older-than", true}, {"--manifest"},       {"--envelope"},        {"--out", true}};

Result<std::string> ListCalls(const call::VerbFlags& flags, State& state) {
  TRY_ASSIGN(const AuditFilter filter, ReadAuditFilter(flags));
  store::PageRequest page;
  page.cursor = flags.Value("--cursor");
  if (flags.Has("--limit")) {
    TRY_ASSIGN(page.limit, ParseCount(flags.Value("--limit")));
  }
  TRY_ASSIGN(const store::Page<store::Call> calls, ListFiltered(state.store(), filter, page));
  Json list = Json::array();
  size_t broken = 0;
  std::string text = fmt::format("{:<24}  {:<36}  {:<10}  {:<12}  {:<16}  {:<10}  {}\n",
                                 "REQUESTED", "CALL", "TENANT", "AGENT", "TOOL", "OUTCOME", "WHY");
  for (const store::Call& row : calls.rows) {
    TRY_ASSIGN(const audit::SealedCall sealed, state.recorder().ReadSealed(row));
    const store::Call& call = sealed.call;
    list.push_back(CallJson(sealed));
    const bool good = sealed.state != audit::SealState::kBroken;
    broken += good ? 0 : 1;
    text += fmt::format("{:<24}  {:<36}  {:<10}  {:<12}  {:<16}  {:<10}  {}\n",
                        good ? FormatTime(call.requested_at) : "?",
                        Printable(call.identity.call_id), Printable(call.identity.tenant.name()),
                        good ? Printable(call.identity.agent) : "?",
                        good ? Printable(call.identity.tool) : "?", OutcomeOf(sealed),
                        good ? call.error_class : sealed.problem);
  }
  if (!calls.next.empty()) {
    text += fmt::format("\nthere are more: --cursor {}\n", calls.next);
  }
  if (flags.json()) {
    text = PrintJson(Json{{"calls", std::move(list)},
                          {"next", calls.next.empty() ? Json(nullptr) : Json(calls.next)}},
                     2) +
           "\n";
  } else if (broken > 0) {
    text += fmt::format(
        "\nNOT GOOD: the stored data of {} calls differs from their seals; they are not shown. "
        "`coffer audit verify` checks all calls\n",
        broken);
  }
  if (broken > 0) {
    ExitWithFindings(text);
  }
  return text;
}

// A tree of calls, drawn or as nested JSON.
class Tree {
 public:
  Tree(call::Recorder& recorder, const std::string& mark) : recorder_(recorder), mark_(mark) {}

  Status Draw(const store::Call& call, const std::string& indent, bool last, int depth,
              Json& json) {
    const bool top = depth == 0;
    TRY_ASSIGN(const audit::SealedCall sealed, recorder_.ReadSealed(call));
    text_ +=
        fmt::format("{}{}{}  {}  {}{}{}\n", indent,
                    top    ? ""
                    : last ? "`-- "
                           : "|-- ",
                    call.identity.call_id, Printable(sealed.call.identity.tool), OutcomeOf(sealed),
                    sealed.call.error_class.empty() ? "" : " (" + sealed.call.error_class + ")",
                    call.identity.call_id == mark_ ? "   <--" : "");
    json = CallJson(sealed);
    broken_ = broken_ || sealed.state == audit::SealState::kBroken;
    json["children"] = Json::array();
    if (depth >= 64) {
      return {};
    }
    TRY_ASSIGN(const std::vector<store::Call> children,
               store::ChildCalls(recorder_.store(), call.identity.tenant, call.identity.call_id));
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
  bool broken() const { return broken_; }

 private:
  call::Recorder& recorder_;
  const std::string mark_;
  std::string text_;
  bool broken_ = false;
};

// The calls without a parent that the id stands for: of a call its topmost caller, of a session or trace all of them.
Result<std::vector<store::Call>> FindRoots(store::Store& store, const std::string& id) {
  if (const Result<store::Call> call = FindAnyCall(store, id); call.ok()) {
    store::Call top = *call;
    for (int depth = 0; depth < 64 && !top.identity.parent_id.empty(); ++depth) {
      TRY_ASSIGN(std::optional<store::Call> parent,
                 store::FindCall(store, top.identity.tenant, top.identity.parent_id));
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
      if (call->identity.parent_id.empty()) {
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
  Tree tree(state.recorder(), id);
  Json list = Json::array();
  for (const store::Call& root : roots) {
    Json json;
    TRY(tree.Draw(root, "", true, 0, json));
    list.push_back(std::move(json));
  }
  std::string text =
      flags.json() ? PrintJson(Json{{"calls", std::move(list)}}, 2) + "\n" : tree.text();
  if (tree.broken()) {
    ExitWithFindings(text);
  }
  return text;
}

Result<std::string> ActAudit(const call::VerbFlags& flags) {
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
    return ListCalls(flags, state);
  }
  if (what == "show" && given.size() == 2) {
    return AuditShow(flags, state, given[1]);
  }
  if (what == "object" && given.size() == 2) {
    return AuditObject(state, given[1]);
  }
  if (what == "files" && (given.size() == 2 || given.size() == 3)) {
    return AuditFiles(flags, state, given[1], given.size() == 3 ? given[2] : "");
  }
  if (what == "fetch" && given.size() == 3) {
    return AuditFetch(flags, state, given[1], given[2]);
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
  if (what == "prune" && given.size() == 1 && !flags.Has("--older-than")) {
    return Refused("policy.usage", "coffer audit prune needs to know how old",
                   "write: coffer audit prune --older-than 30d");
  }
  if (what == "prune" && given.size() == 1) {
    return AuditPrune(flags, state);
  }
  return UnknownAction("audit", flags.words().empty() ? "" : flags.words().front(),
                       {"list", "show", "object", "files", "fetch", "chain", "tail", "verify",
                        "verify-receipt", "checkpoint", "key", "export", "prune"});
}

}  // namespace

int AuditVerb(std::span<const std::string_view> words) {
  return RunTextVerb("audit", kAuditUsage, kAuditFlags, words, ActAudit);
}

}  // namespace coffer::cli
