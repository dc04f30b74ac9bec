// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/quantity.h"
#include "cli/state.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"
#include "store/key.h"
#include "store/tenant.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kKeyUsage =
    R"(API keys of the daemon. A key belongs to one tenant and one role, and is shown once.

Usage:
  coffer key new [--role agent|approver|operator|auditor] [--tenant T] [--agent NAME] [--expires DURATION]
                 [--all-tenants] [--json]
  coffer key list [--tenant T] [--json]
  coffer key revoke ID [--tenant T] [--keep-running] [--with-keys]

  --tenant T    the tenant (local); `new` makes it if it does not exist
  --all-tenants `new`: an operator or auditor who sees every tenant, and acts for this one; `list`: of every tenant
  --keep-running  `revoke`: calls that the key has made go on; otherwise a running daemon ends them within a second
  --with-keys   `revoke`: also the keys that it has made, and those that they have made
  --state DIR   the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)
)";

constexpr call::FlagSpec kKeyFlags[] = {
    {"--role", true},         {"--tenant", true},        {"--agent", true},     {"--expires", true},
    {"--all-tenants", false}, {"--keep-running", false}, {"--with-keys", false}};

Json KeyJson(const store::ApiKey& key) {
  const auto time = [](const std::optional<Nanos>& at) {
    return at ? Json(FormatTime(*at)) : Json(nullptr);
  };
  return {{"id", key.id},
          {"tenant", key.tenant.name()},
          {"role", store::RoleName(key.role)},
          {"agent", key.agent},
          {"made_by", key.made_by.empty() ? Json(nullptr) : Json(key.made_by)},
          {"all_tenants", key.all_tenants},
          {"created_at", FormatTime(key.created_at)},
          {"expires_at", time(key.expires_at)},
          {"revoked_at", time(key.revoked_at)},
          {"last_used_at", time(key.last_used_at)}};
}

Result<std::string> NewKey(const call::VerbFlags& flags, State& state,
                           const store::TenantId& tenant) {
  store::KeyRequest request;
  const std::string role = flags.Value("--role", "agent");
  const std::optional<store::Role> found = store::FindRole(role);
  if (!found) {
    return Refused("policy.usage", fmt::format("there is no role {}", role),
                   "agent, approver, operator or auditor");
  }
  request.role = *found;
  request.all_tenants = flags.Has("--all-tenants");
  request.agent = flags.Value("--agent", role);
  request.made_by = CallerName();
  if (flags.Has("--expires")) {
    TRY_ASSIGN(request.lifetime, ParseDuration(flags.Value("--expires")));
  }
  TRY_ASSIGN(const store::Tenant made, store::EnsureTenant(state.store(), tenant));
  // Who gives power away is on record before it is given.
  TRY(state.recorder().Event(made.id.name(), "key.created",
                             {{"by", CallerName()},
                              {"role", std::string(store::RoleName(request.role))},
                              {"agent", request.agent}}));
  TRY_ASSIGN(const store::NewKey key, store::CreateKey(state.store(), made.id, request));
  if (!flags.json()) {
    return key.text + "\n";
  }
  Json json = KeyJson(key.key);
  json["key"] = key.text;
  return PrintJson(json) + "\n";
}

Result<std::string> ListKeys(const call::VerbFlags& flags, State& state,
                             const store::TenantId& tenant) {
  TRY_ASSIGN(const store::Page<store::ApiKey> keys,
             flags.Has("--all-tenants")
                 ? store::ListKeys(state.store(), store::AllTenants{}, store::PageRequest{1000, ""})
                 : store::ListKeys(state.store(), tenant, store::PageRequest{1000, ""}));
  Json list = Json::array();
  std::string text = fmt::format("{:<16}  {:<12}  {:<9}  {:<20}  {:<24}  {:<16}  {}\n", "ID",
                                 "TENANT", "ROLE", "AGENT", "CREATED", "MADE BY", "STATE");
  for (const store::ApiKey& key : keys.rows) {
    list.push_back(KeyJson(key));
    const std::string_view word = key.revoked_at ? "revoked"
                                  : key.expires_at && *key.expires_at <= state.store().Now()
                                      ? "expired"
                                      : "valid";
    text += fmt::format("{:<16}  {:<12}  {:<9}  {:<20}  {:<24}  {:<16}  {}{}\n", key.id,
                        key.tenant.name(), store::RoleName(key.role), key.agent,
                        FormatTime(key.created_at), key.made_by.empty() ? "-" : key.made_by, word,
                        key.all_tenants ? ", all tenants" : "");
  }
  return flags.json() ? PrintJson(Json{{"keys", std::move(list)}}, 2) + "\n" : text;
}

Result<std::string> RevokeKeys(const call::VerbFlags& flags, State& state,
                               const store::TenantId& tenant) {
  const std::string& id = flags.words()[1];
  const bool keep = flags.Has("--keep-running");
  const store::RevokedCalls calls =
      keep ? store::RevokedCalls::kKeepRunning : store::RevokedCalls::kEnd;
  std::vector<std::string> revoked = {id};
  if (flags.Has("--with-keys")) {
    TRY_ASSIGN(const std::vector<std::string> made,
               store::RevokeKeyAndMade(state.store(), tenant, id, calls));
    revoked.insert(revoked.end(), made.begin(), made.end());
  } else {
    TRY(store::RevokeKey(state.store(), tenant, id, calls));
  }
  std::string text;
  for (const std::string& one : revoked) {
    TRY(state.recorder().Event(tenant.name(), "key.revoked",
                               {{"by", CallerName()},
                                {"key", one},
                                {"calls", keep ? "go on" : "end"},
                                {"with", one == id ? "" : id}}));
    text += fmt::format("{} is revoked; calls that it has made {}\n", one, keep ? "go on" : "end");
  }
  return text;
}

Result<std::string> ActKey(const call::VerbFlags& flags) {
  const std::vector<std::string>& given = flags.words();
  TRY_ASSIGN(const store::TenantId tenant,
             store::TenantId::Parse(flags.Value("--tenant", "local")));
  TRY_ASSIGN(State state, State::Open(flags));
  if (given[0] == "new" && given.size() == 1) {
    return NewKey(flags, state, tenant);
  }
  if (given[0] == "list" && given.size() == 1) {
    return ListKeys(flags, state, tenant);
  }
  if (given[0] == "revoke" && given.size() == 2) {
    return RevokeKeys(flags, state, tenant);
  }
  return UnknownAction("key", given.front(), {"new", "list", "revoke"});
}

}  // namespace

int KeyVerb(std::span<const std::string_view> words) {
  return RunTextVerb("key", kKeyUsage, kKeyFlags, words, ActKey);
}

}  // namespace coffer::cli
