// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "call/config_file.h"
#include "cli/local_sessions.h"
#include "cli/state.h"
#include "cli/text_verb.h"
#include "cli/verb_processes.h"
#include "cli/verbs.h"
#include "store/session.h"
#include "store/switches.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kSessionsUsage =
    R"(Sessions: calls of one agent that share a workspace, a lifetime and budgets.

Usage:
  coffer sessions new [--lifetime TIME] [--size SIZE] [--label TEXT]   prints the id of a session of your own, for
                                       `coffer call --session ID` and `coffer run --session ID`; no daemon is needed
  coffer sessions list [--tenant T] [--all] [--json]   the open ones; --all shows ended ones too
  coffer sessions files ID [PREFIX] [--json]           what is in the workspace of one of your own; with PREFIX only
                                                       paths that begin with it, such as src/
  coffer sessions extend ID [--lifetime TIME]          moves its end to that time from now, never to an earlier one
  coffer sessions end ID [--tenant T]                  nothing more is admitted, its processes are killed and its files
                                                       are removed; a daemon kills what runs in it

  coffer sessions start ID [--json] [--port N] [flags of `coffer run`] -- CMD ARG...
                                                       runs CMD in the background; prints the id of the process, with
                                                       --json what `processes` says of it
  coffer sessions processes ID [--json]                those that run, and how the others ended
  coffer sessions log ID PROCESS [--follow] [--json]   what it printed; --follow waits for more until it ends
  coffer sessions signal ID PROCESS SIGNAL             TERM, INT, QUIT, HUP, USR1 or USR2
  coffer sessions stop ID PROCESS                      asks it to end, and kills it if it does not

  --lifetime TIME  when it ends by itself (24h, at most 30d); its files go with it
  --size SIZE      what its files may hold (100MiB, or what coffer.toml allows, which is also the most)
  --label TEXT     what it is for, at most 200 bytes
  --port N         the session's later calls reach the process on port N of their own loopback; several with commas
  --tenant T       the tenant (local)
  --config FILE    the limits of tenants (coffer.toml in the operator's directory)
  --state DIR      the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)

A process has a boundary, limits and a log of its own (--output: 1MiB). It has no time limit but the session's, and 30m of
CPU time; --wall, --cpu and the other flags say otherwise. It goes on when its terminal closes, and ends with its session.

  S=$(coffer sessions new)
  coffer run --session $S -- sh -c 'echo hello > notes.txt'
  P=$(coffer sessions start $S --port 8000 -- python3 -u -m http.server 8000)
  coffer run --session $S -- curl -s http://127.0.0.1:8000/notes.txt
)";

constexpr call::FlagSpec kSessionsFlags[] = {
    {"--tenant", true}, {"--all", false},   {"--lifetime", true}, {"--size", true},
    {"--label", true},  {"--config", true}, {"--follow", false}};

constexpr Nanos kLongestLifetime = std::chrono::hours(24 * 30);
constexpr size_t kMostFiles = 10'000;

Json SessionJson(const store::Session& session) {
  return {{"session_id", session.id},
          {"tenant", session.tenant.name()},
          {"agent", session.agent},
          {"created_at", FormatTime(session.created_at)},
          {"expires_at", FormatTime(session.ends_at)},
          {"ended_at", session.ended_at ? Json(FormatTime(*session.ended_at)) : Json(nullptr)},
          {"calls", session.spent.calls}};
}

Result<std::string> ListSessions(const call::VerbFlags& flags, State& state,
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

Result<Nanos> Lifetime(const call::VerbFlags& flags) {
  Nanos lifetime = LocalSessions::kUsualLifetime;
  if (flags.Has("--lifetime")) {
    TRY_ASSIGN(lifetime, ParseDuration(flags.Value("--lifetime")));
  }
  if (lifetime > kLongestLifetime) {
    return Refused("policy.session",
                   fmt::format("--lifetime: {} is too long", Printable(flags.Value("--lifetime"))),
                   "the longest is 30d");
  }
  return lifetime;
}

Result<std::string> NewSession(const call::VerbFlags& flags, State& state) {
  TRY_ASSIGN(const std::string config_file, flags.ConfigFile());
  TRY_ASSIGN(const call::FileConfig config,
             config_file.empty()
                 ? Result<call::FileConfig>(call::FileConfig())
                 : call::LoadConfigFile(config_file, /*may_be_missing=*/!flags.Has("--config")));
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
  TRY_ASSIGN(store::SessionRequest request,
             sessions.UsualRequest(config.RulesOf(store::TenantId::Local())));
  TRY_ASSIGN(request.lifetime, Lifetime(flags));
  const uint64_t most = request.bytes;
  if (flags.Has("--size")) {
    TRY_ASSIGN(request.bytes, ParseSize(flags.Value("--size")));
  }
  if (request.bytes > most) {
    return Refused("policy.session",
                   fmt::format("--size: a session may hold at most {}", FormatSize(most)),
                   "storage.session in coffer.toml allows more");
  }
  request.label = flags.Value("--label");
  TRY(sessions.Sweep());
  TRY_ASSIGN(const store::Session session, sessions.Make(std::move(request)));
  return flags.json() ? PrintJson(SessionJson(session), 2) + "\n" : session.id + "\n";
}

Result<std::string> Extend(const call::VerbFlags& flags, State& state,
                           const store::TenantId& tenant, const std::string& id) {
  TRY_ASSIGN(const Nanos lifetime, Lifetime(flags));
  TRY_ASSIGN(const std::optional<store::Session> session,
             store::ExtendSession(state.store(), tenant, id, lifetime, kLongestLifetime));
  if (!session) {
    return Refused("policy.session", fmt::format("there is no open session {}", Printable(id)),
                   "`coffer sessions list` names those that are open; `coffer sessions new` makes "
                   "one");
  }
  return flags.json() ? PrintJson(SessionJson(*session), 2) + "\n"
                      : fmt::format("{} ends at {}\n", id, FormatTime(session->ends_at));
}

Result<std::string> Files(const call::VerbFlags& flags, State& state, const std::string& id,
                          const std::string& prefix) {
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
  TRY_ASSIGN(const LocalSessions::Listing listing, sessions.List(id, prefix, kMostFiles));
  Json list = Json::array();
  std::string text = fmt::format("{:>12}  {:<24}  {}\n", "BYTES", "MODIFIED", "PATH");
  for (const LocalSessions::File& file : listing.files) {
    list.push_back(
        {{"path", file.path}, {"size", file.size}, {"modified_at", FormatTime(file.modified_at)}});
    text += fmt::format("{:>12}  {:<24}  {}\n", file.size, FormatTime(file.modified_at),
                        Printable(file.path));
  }
  if (listing.more) {
    text += fmt::format("(there are more than {})\n", kMostFiles);
  }
  return flags.json()
             ? PrintJson(Json{{"files", std::move(list)}, {"more", listing.more}}, 2) + "\n"
             : text;
}

// The switch is how a daemon that has the store open learns that it must kill what runs; it runs nothing in the command
// line's own sessions.
Result<std::string> End(State& state, const store::TenantId& tenant, const std::string& id) {
  const std::string who = CallerName();
  TRY_ASSIGN(const store::EndedSession ended,
             store::EndSession(state.store(), tenant, id, "ended by " + who));
  const bool own = ended.session.agent == kCliAgent && !ended.session.enforced;
  if (!own) {
    store::SwitchChange change;
    change.kind = store::SwitchKind::kSession;
    change.name = id;
    change.who = who;
    change.why = "session ended";
    TRY(store::SetSwitch(state.store(), tenant, change));
  }
  if (ended.just_now) {
    TRY(state.recorder().Event(tenant.name(), "session.ended", {{"by", who}, {"session", id}}));
  }
  std::string text = fmt::format("{} has ended; {} {} under way\n", id, ended.open_calls.size(),
                                 ended.open_calls.size() == 1 ? "call was" : "calls were");
  if (own) {
    TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
    TRY(sessions.EndProcesses(id, ProcessPlaces::Wait::kYes));
    TRY_ASSIGN(const bool removed, sessions.RemoveFiles(ended.session));
    text += removed ? "its files are gone\n"
                    : "a call still uses its files; they are removed when it has ended\n";
  }
  return text;
}

Result<std::string> ActSessions(const call::VerbFlags& flags) {
  const std::vector<std::string>& given = flags.words();
  TRY_ASSIGN(const store::TenantId tenant,
             store::TenantId::Parse(flags.Value("--tenant", "local")));
  TRY_ASSIGN(State state, State::Open(flags));
  if (given[0] == "list" && given.size() == 1) {
    TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
    TRY(sessions.Sweep());
    return ListSessions(flags, state, tenant);
  }
  if (given[0] == "new" && given.size() == 1) {
    return NewSession(flags, state);
  }
  if (given[0] == "files" && (given.size() == 2 || given.size() == 3)) {
    return Files(flags, state, given[1], given.size() == 3 ? given[2] : "");
  }
  if (given[0] == "end" && given.size() == 2) {
    return End(state, tenant, given[1]);
  }
  if (given[0] == "extend" && given.size() == 2) {
    return Extend(flags, state, tenant, given[1]);
  }
  if (given[0] == "processes" && given.size() == 2) {
    return ListProcesses(flags, state, given[1]);
  }
  if (given[0] == "log" && given.size() == 3) {
    return ReadProcessLog(flags, state, given[1], given[2]);
  }
  if (given[0] == "signal" && given.size() == 4) {
    return SignalProcess(state, given[1], given[2], given[3]);
  }
  if (given[0] == "stop" && given.size() == 3) {
    return StopProcess(state, given[1], given[2]);
  }
  return UnknownAction(
      "sessions", given.front(),
      {"new", "list", "files", "extend", "end", "start", "processes", "log", "signal", "stop"});
}

}  // namespace

int SessionsVerb(std::span<const std::string_view> words, isolation::OwnWords own) {
  if (!words.empty() && words.front() == "start" &&
      (words.size() < 2 || (words[1] != "--help" && words[1] != "-h"))) {
    return StartVerb(words.subspan(1), own);
  }
  return RunTextVerb("sessions", kSessionsUsage, kSessionsFlags, words, ActSessions);
}

}  // namespace coffer::cli
