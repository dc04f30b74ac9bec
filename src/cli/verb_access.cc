// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/daemon_client.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kAccessUsage =
    R"(Access to hosts that calls of the daemon wait for, because a rule of their manifest says ask = true.

Usage:
  coffer access list [--json]
  coffer access grant ID [--minutes N]
  coffer access deny ID

A grant opens the host and port that were asked for, for that call or for N minutes of it, and nothing else. A request that
is not answered in time (hold_time of [egress], 2m) is denied.

  --minutes N    for so many minutes (1 to 1440) instead of the whole call
  --socket PATH  the daemon's socket (default: coffer.sock in the state directory)
  --state DIR    the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)
)";

constexpr call::FlagSpec kAccessFlags[] = {{"--minutes", true}, {"--socket", true}};
constexpr uint32_t kMostMinutes = 24 * 60;

std::string Member(const Json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? Printable(json[name].get<std::string>())
                                                       : std::string();
}

Result<std::string> ListRequests(const call::VerbFlags& flags, const std::string& socket) {
  TRY_ASSIGN(const std::string body, AskDaemon(socket, "GET", "/v1/access", ""));
  TRY_ASSIGN(const Json json, ParseJson(body));
  if (flags.json()) {
    return PrintJson(json, 2) + "\n";
  }
  std::string text =
      fmt::format("{:<40}  {:<12}  {:<16}  {:<16}  {}\n", "ID", "TENANT", "TOOL", "AGENT", "OPENS");
  for (const Json& one : json.value("access", Json::array())) {
    text += fmt::format("{:<40}  {:<12}  {:<16}  {:<16}  {}\n", Member(one, "id"),
                        Member(one, "tenant"), Member(one, "tool"), Member(one, "agent"),
                        Member(one, "opens"));
  }
  return text;
}

Result<std::string> Decide(const call::VerbFlags& flags, const std::string& socket) {
  const bool grant = flags.words()[0] == "grant";
  const std::string& id = flags.words()[1];
  const bool plain = std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.';
  });
  if (!plain) {
    return Refused("policy.usage", fmt::format("{} is not the id of a request", Printable(id)),
                   "`coffer access list` shows them");
  }
  Json body = {{"decision", grant ? "grant" : "deny"}};
  if (flags.Has("--minutes")) {
    const std::string text = flags.Value("--minutes");
    uint32_t minutes = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, minutes);
    if (!grant || problem != std::errc() || stop != end || minutes < 1 || minutes > kMostMinutes) {
      return Refused("policy.usage", "--minutes is for a grant, from 1 to 1440",
                     "coffer access grant ID --minutes 5");
    }
    body["minutes"] = minutes;
  }
  TRY_ASSIGN(const std::string answer,
             AskDaemon(socket, "POST", "/v1/access/" + id, PrintJson(body)));
  if (flags.json()) {
    return answer + "\n";
  }
  TRY_ASSIGN(const Json json, ParseJson(answer));
  return fmt::format("{} {} for call {}\n", Member(json, "opens"),
                     grant ? "is open" : "stays closed", Member(json, "call_id"));
}

Result<std::string> ActAccess(const call::VerbFlags& flags) {
  const std::vector<std::string>& given = flags.words();
  TRY_ASSIGN(const std::string state, flags.StateDir());
  const std::string socket = flags.Value("--socket", state + "/coffer.sock");
  if (given[0] == "list" && given.size() == 1) {
    return ListRequests(flags, socket);
  }
  if ((given[0] == "grant" || given[0] == "deny") && given.size() == 2) {
    return Decide(flags, socket);
  }
  if (given[0] == "grant" || given[0] == "deny") {
    return Refused("policy.usage", fmt::format("coffer access {} takes one id", given[0]),
                   "`coffer access list` shows them");
  }
  return UnknownAction("access", given.front(), {"list", "grant", "deny"});
}

}  // namespace

int AccessVerb(std::span<const std::string_view> words) {
  return RunTextVerb("access", kAccessUsage, kAccessFlags, words, ActAccess);
}

}  // namespace coffer::cli
