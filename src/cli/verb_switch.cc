// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/state.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"
#include "policy/manifest/mistake.h"
#include "store/session.h"
#include "store/switches.h"
#include "store/tenant.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kSwitchUsage =
    R"(Kill switches: calls of what they name are refused, and the daemon kills those that run within a second.

Usage:
  coffer switch list [--tenant T] [--json]
  coffer switch on tool|agent|session NAME [--tenant T] --reason WHY
  coffer switch on tenant NAME --reason WHY
  coffer switch off tool|agent|session NAME [--tenant T]
  coffer switch off breaker TOOL:AGENT [--tenant T]
  coffer switch off tenant NAME

A stopped agent or tenant can read its record and nothing else, whatever its role: it cannot lift its own switch. A
breaker is a pause that began by itself, because calls of the tool by the agent were denied too often (`coffer help
config`, [breaker]). It refuses new calls, ends by itself, and can be lifted before that.

  --tenant T    the tenant (local)
  --reason WHY  why, for the record
  --state DIR   the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)
)";

constexpr call::FlagSpec kSwitchFlags[] = {{"--tenant", true}, {"--reason", true}};

Result<std::string> ListSwitches(const call::VerbFlags& flags, State& state,
                                 const store::TenantId& tenant) {
  TRY_ASSIGN(const std::vector<store::Switch> switches,
             flags.Has("--tenant") ? store::ListSwitches(state.store(), tenant)
                                   : store::ListSwitches(state.store(), store::AllTenants{}));
  Json list = Json::array();
  std::string text = fmt::format("{:<12}  {:<13}  {:<36}  {:<24}  {:<24}  {:<16}  {}\n", "TENANT",
                                 "SCOPE", "NAME", "SINCE", "UNTIL", "BY", "REASON");
  for (const store::Switch& one : switches) {
    if (!one.on) {
      continue;
    }
    const std::string whose = one.tenant ? one.tenant->name() : "(all)";
    list.push_back({{"tenant", one.tenant ? Json(one.tenant->name()) : Json(nullptr)},
                    {"scope", store::SwitchKindName(one.kind)},
                    {"name", one.name},
                    {"set_at", FormatTime(one.at)},
                    {"until", one.until ? Json(FormatTime(*one.until)) : Json(nullptr)},
                    {"set_by", one.who},
                    {"reason", one.why}});
    text += fmt::format("{:<12}  {:<13}  {:<36}  {:<24}  {:<24}  {:<16}  {}\n", whose,
                        store::SwitchKindName(one.kind), Printable(one.name), FormatTime(one.at),
                        one.until ? FormatTime(*one.until) : "lifted", Printable(one.who),
                        Printable(one.why));
  }
  return flags.json() ? PrintJson(Json{{"switches", std::move(list)}}, 2) + "\n" : text;
}

// A tool must be one that this process can see; --tools names the directories of a daemon that has others.
Status CheckTool(const State& state, const std::string& name) {
  const std::vector<call::ShelfEntry> entries = state.shelf().List();
  std::vector<std::string_view> names;
  for (const call::ShelfEntry& entry : entries) {
    if (entry.name == name) {
      return {};
    }
    names.push_back(entry.name);
  }
  const std::string_view nearest = policy::NearestWord(name, names);
  return Refused("policy.switch", fmt::format("there is no tool {} to stop", Printable(name)),
                 nearest.empty()
                     ? "`coffer tools list` names them; --tools DIR if they are elsewhere"
                     : fmt::format("did you mean {}?", nearest));
}

Status CheckThere(State& state, const store::TenantId& tenant, store::SwitchKind kind,
                  const std::string& name) {
  if (kind == store::SwitchKind::kTool) {
    TRY(CheckTool(state, name));
  }
  TRY_ASSIGN(const std::optional<store::Tenant> found, store::FindTenant(state.store(), tenant));
  bool there = found.has_value();
  std::string hint = "coffer key list --all-tenants shows the tenants that have keys";
  if (there && kind == store::SwitchKind::kAgent) {
    TRY_ASSIGN(there, store::AgentIsKnown(state.store(), tenant, name));
    hint = "an agent is known by its keys, its sessions or its calls";
  }
  if (there && kind == store::SwitchKind::kSession) {
    TRY_ASSIGN(const std::optional<store::Session> session,
               store::FindSession(state.store(), tenant, name));
    there = session.has_value();
    hint = "coffer sessions list shows their ids";
  }
  if (!there) {
    return Refused(
        "policy.switch",
        fmt::format("there is no {} {} to stop", store::SwitchKindName(kind), Printable(name)),
        hint);
  }
  return {};
}

Result<std::string> Flip(const call::VerbFlags& flags, State& state, store::TenantId tenant) {
  const std::vector<std::string>& given = flags.words();
  const std::optional<store::SwitchKind> kind = store::FindSwitchKind(given[1]);
  if (!kind || *kind == store::SwitchKind::kDisabledTool) {
    const std::string_view nearest =
        policy::NearestWord(given[1], {"tool", "agent", "session", "tenant", "breaker"});
    return Refused("policy.usage",
                   fmt::format("a switch stops a tool, an agent, a session or a tenant, not {}",
                               Printable(given[1])),
                   nearest.empty() ? "coffer switch on agent NAME --reason WHY"
                                   : fmt::format("did you mean {}?", nearest));
  }
  if (*kind == store::SwitchKind::kBreaker && given[0] == "on") {
    return Refused("policy.usage", "a breaker pauses by itself, when calls are denied",
                   "coffer switch on agent NAME --reason WHY");
  }
  if (*kind == store::SwitchKind::kTenant) {
    TRY_ASSIGN(tenant, store::TenantId::Parse(given[2]));
  }
  store::SwitchChange change;
  change.kind = *kind;
  change.name = given[2];
  change.on = given[0] == "on";
  change.who = CallerName();
  change.why = flags.Value("--reason");
  if (change.on) {
    if (change.why.empty()) {
      return Refused("policy.usage", "a switch needs a reason, for the record", "--reason WHY");
    }
    TRY(CheckThere(state, tenant, *kind, change.name));
  } else {
    TRY_ASSIGN(const bool on, store::IsSwitchedOn(state.store(), tenant, *kind, change.name));
    if (!on) {
      return Refused("policy.switch", "no such switch is on", "coffer switch list");
    }
  }
  TRY(store::SetSwitch(state.store(), tenant, change));
  TRY(state.recorder().Event(tenant.name(), change.on ? "switch.on" : "switch.off",
                             {{"by", change.who},
                              {"scope", std::string(store::SwitchKindName(*kind))},
                              {"name", change.name},
                              {"reason", change.why}}));
  return fmt::format("{} {} {}\n", store::SwitchKindName(*kind), Printable(change.name),
                     change.on ? "is stopped" : "may go on");
}

Result<std::string> ActSwitch(const call::VerbFlags& flags) {
  const std::vector<std::string>& given = flags.words();
  TRY_ASSIGN(const store::TenantId tenant,
             store::TenantId::Parse(flags.Value("--tenant", "local")));
  TRY_ASSIGN(State state, State::Open(flags));
  if (given[0] == "list" && given.size() == 1) {
    return ListSwitches(flags, state, tenant);
  }
  if ((given[0] == "on" || given[0] == "off") && given.size() == 3) {
    return Flip(flags, state, tenant);
  }
  if (given[0] == "on" || given[0] == "off") {
    return Refused("policy.usage",
                   fmt::format("coffer switch {} takes a scope and a name", given[0]),
                   "coffer switch on tool|agent|session|tenant NAME --reason WHY");
  }
  return UnknownAction("switch", given.front(), {"list", "on", "off"});
}

}  // namespace

int SwitchVerb(std::span<const std::string_view> words) {
  return RunTextVerb("switch", kSwitchUsage, kSwitchFlags, words, ActSwitch);
}

}  // namespace coffer::cli
