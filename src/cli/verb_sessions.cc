// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_sessions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/state.h"
#include "cli/text_verb.h"
#include "store/session.h"
#include "store/switches.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kUsage =
    R"(Sessions: calls of one agent that share a workspace, a lifetime and budgets.

Usage:
  coffer sessions list [--tenant T] [--all] [--json]   the open ones; --all shows ended ones too
  coffer sessions end ID [--tenant T]                  nothing more is admitted, and what runs is killed by the daemon

  --tenant T    the tenant (local)
  --state DIR   the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)
)";

constexpr call::FlagSpec kFlags[] = {{"--tenant", true}, {"--all", false}};

Json SessionJson(const store::Session& session) {
  return {{"session_id", session.id},
          {"tenant", session.tenant.name()},
          {"agent", session.agent},
          {"created_at", FormatTime(session.created_at)},
          {"expires_at", FormatTime(session.ends_at)},
          {"ended_at", session.ended_at ? Json(FormatTime(*session.ended_at)) : Json(nullptr)},
          {"calls", session.spent.calls}};
}

Result<std::string> List(const call::VerbFlags& flags, State& state,
                         const store::TenantId& tenant) {
  const auto filter = flags.Has("--all") ? store::SessionFilter::kAll : store::SessionFilter::kOpen;
  TRY_ASSIGN(const store::Page<store::Session> sessions,
             store::ListSessions(state.store(), tenant, filter, store::PageRequest{1000, ""}));
  Json list = Json::array();
  std::string text = fmt::format("{:<36}  {:<20}  {:<24}  {:>6}  {}\n", "ID", "AGENT", "EXPIRES",
                                 "CALLS", "STATE");
  for (const store::Session& session : sessions.rows) {
    list.push_back(SessionJson(session));
    text += fmt::format("{:<36}  {:<20}  {:<24}  {:>6}  {}\n", session.id, session.agent,
                        FormatTime(session.ends_at), session.spent.calls,
                        session.ended_at ? "ended" : "open");
  }
  return flags.json() ? PrintJson(Json{{"sessions", std::move(list)}}, 2) + "\n" : text;
}

// The switch is how a daemon that has the store open learns that it must kill what runs.
Result<std::string> End(State& state, const store::TenantId& tenant, const std::string& id) {
  const std::string who = fmt::format("uid:{}", ::getuid());
  TRY_ASSIGN(const store::EndedSession ended,
             store::EndSession(state.store(), tenant, id, "ended by " + who));
  store::SwitchChange change;
  change.kind = store::SwitchKind::kSession;
  change.name = id;
  change.who = who;
  change.why = "session ended";
  TRY(store::SetSwitch(state.store(), tenant, change));
  if (ended.just_now) {
    TRY(state.recorder().Event(tenant.name(), "session.ended", {{"by", who}, {"session", id}}));
  }
  return fmt::format("{} has ended; {} calls were under way\n", id, ended.open_calls.size());
}

Result<std::string> Act(const call::VerbFlags& flags) {
  const std::vector<std::string>& given = flags.words();
  TRY_ASSIGN(const store::TenantId tenant,
             store::TenantId::Parse(flags.Value("--tenant", "local")));
  TRY_ASSIGN(State state, State::Open(flags));
  if (given[0] == "list" && given.size() == 1) {
    return List(flags, state, tenant);
  }
  if (given[0] == "end" && given.size() == 2) {
    return End(state, tenant, given[1]);
  }
  return UnknownAction("sessions", given.front(), {"list", "end"});
}

}  // namespace

int SessionsVerb(std::span<const std::string_view> words) {
  return RunTextVerb("sessions", kUsage, kFlags, words, Act);
}

}  // namespace coffer::cli
