// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about keys and switches.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/service.h"
#include "daemon/standing.h"
#include "daemon/views.h"
#include "store/key.h"
#include "store/session.h"
#include "store/switches.h"

namespace coffer::daemon {
namespace {

constexpr size_t kMaxKeys = 1000;

template <typename T>
using Made = gateway::Answer<T>;

// The tenant's own name of what a switch is about.
store::SwitchChange ChangeOf(const gateway::Identity& who, const gateway::SwitchTarget& target,
                             bool on, const std::string& reason) {
  return {KindOf(target.scope), target.name, on, who.key_id, reason};
}

// Those an identity may see: of its tenant, or of all.
Result<store::Page<store::ApiKey>> KeysFor(store::Store& store, const gateway::Identity& who) {
  const store::PageRequest page{kMaxKeys, ""};
  return who.all_tenants ? store::ListKeys(store, store::AllTenants{}, page)
                         : store::ListKeys(store, who.tenant, page);
}

gateway::Refusal Unknown(std::string code, std::string message, std::string hint) {
  return {gateway::RefusalKind::kNotFound,
          std::move(code),
          std::move(message),
          std::move(hint),
          {},
          "",
          {},
          {}};
}

// Whose switch it is: the asker's tenant, or the tenant that it names if the asker may look at all of them.
Made<store::TenantId> TenantOf(store::Store& store, const gateway::Identity& who,
                               const gateway::SwitchTarget& target) {
  const bool other =
      target.scope == gateway::SwitchTarget::Scope::kTenant && target.name != who.tenant.name();
  const Result<store::TenantId> tenant =
      other ? store::TenantId::Parse(target.name) : Result<store::TenantId>(who.tenant);
  if (!tenant.ok() || (other && !who.all_tenants)) {
    return Unknown("switch.unknown", "there is no tenant of that name to stop",
                   "an operator can stop its own tenant; only an operator who sees all tenants can "
                   "stop another");
  }
  const Result<std::optional<store::Tenant>> found = store::FindTenant(store, *tenant);
  if (!found.ok()) {
    return RefusalOf(found.error());
  }
  if (!*found) {
    return Unknown("switch.unknown", "there is no tenant of that name to stop", "");
  }
  return *tenant;
}

// An agent with an operator's key lifts no pause of its own, as it lifts no switch of its own.
std::optional<gateway::Refusal> OwnPause(const gateway::Identity& who,
                                         const gateway::SwitchTarget& target) {
  const size_t colon = target.name.find(':');
  if (target.scope != gateway::SwitchTarget::Scope::kBreaker || colon == std::string::npos ||
      target.name.substr(colon + 1) != who.agent || IsOwner(who)) {
    return std::nullopt;
  }
  return gateway::Refusal{.kind = gateway::RefusalKind::kRefused,
                          .code = "policy.breaker",
                          .message = "an agent does not lift its own pause",
                          .hint =
                              "another operator of the tenant lifts it, or the owner of the "
                              "host: coffer switch off breaker TOOL:AGENT"};
}

// The switch is thrown already: that it cannot be recorded now must not undo it.
void TellSwitch(call::Recorder& recorder, const gateway::Identity& who, const std::string& tenant,
                const gateway::SwitchTarget& target, std::string_view event,
                const std::string& reason) {
  (void)recorder.Happened(tenant, event,
                          {{"by", who.key_id},
                           {"scope", std::string(store::SwitchKindName(KindOf(target.scope)))},
                           {"name", target.name},
                           {"reason", reason}});
}

}  // namespace

void DaemonService::CreateKey(const gateway::Identity& who, gateway::KeyRequest request,
                              gateway::Reply<gateway::NewKey> reply) {
  AnswerIfStanding<gateway::NewKey>(
      context_, who, std::move(reply), [this, who, request]() -> Made<gateway::NewKey> {
        store::KeyRequest asked;
        asked.role = request.role;
        asked.agent = request.agent;
        asked.label = request.label;
        asked.made_by = who.key_id;
        asked.lifetime = request.expires_in.value_or(std::chrono::seconds(0));
        // What a key or token makes does not outlive it.
        const Result<std::optional<Nanos>> left = TimeLeft(context_.store(), who);
        if (!left.ok()) {
          return RefusalOf(left.error());
        }
        if (*left && (asked.lifetime == Nanos(0) || asked.lifetime > **left)) {
          asked.lifetime = std::max(**left, Nanos(1));
        }
        // Who gives power away is on record before it is given.
        if (const Status told =
                context_.recorder().Event(who.tenant.name(), "key.created",
                                          {{"by", who.key_id},
                                           {"role", std::string(store::RoleName(asked.role))},
                                           {"agent", asked.agent}});
            !told.ok()) {
          return RefusalOf(told.error());
        }
        Result<store::NewKey> made = store::CreateKey(context_.store(), who.tenant, asked);
        if (!made.ok()) {
          return RefusalOf(made.error());
        }
        return gateway::NewKey{ViewOf(made->key), made->text};
      });
}

void DaemonService::ListKeys(const gateway::Identity& who,
                             gateway::Reply<std::vector<gateway::KeyView>> reply) {
  using Views = std::vector<gateway::KeyView>;
  AnswerIfStanding<Views>(context_, who, std::move(reply), [this, who]() -> Made<Views> {
    Result<store::Page<store::ApiKey>> keys = KeysFor(context_.store(), who);
    if (!keys.ok()) {
      return RefusalOf(keys.error());
    }
    Views views;
    for (const store::ApiKey& key : keys->rows) {
      views.push_back(ViewOf(key));
    }
    return views;
  });
}

void DaemonService::RevokeKey(const gateway::Identity& who, const std::string& key_id,
                              gateway::Revocation how, gateway::Reply<gateway::KeyView> reply) {
  AnswerIfStanding<gateway::KeyView>(
      context_, who, std::move(reply), [this, who, key_id, how]() -> Made<gateway::KeyView> {
        Result<std::optional<store::ApiKey>> key =
            store::FindKey(context_.store(), store::AllTenants{}, key_id);
        if (!key.ok()) {
          return RefusalOf(key.error());
        }
        if (!*key || ((*key)->tenant != who.tenant && !who.all_tenants)) {
          return Unknown("policy.key", "there is no such key", "GET /v1/keys lists them");
        }
        const store::TenantId& tenant = (*key)->tenant;
        const bool keep = how.calls == gateway::RevokedCalls::kKeepRunning;
        const store::RevokedCalls calls =
            keep ? store::RevokedCalls::kKeepRunning : store::RevokedCalls::kEnd;
        std::vector<std::string> revoked = {key_id};
        if (how.keys == gateway::RevokedKeys::kAndMade) {
          const Result<std::vector<std::string>> made =
              store::RevokeKeyAndMade(context_.store(), tenant, key_id, calls);
          if (!made.ok()) {
            return RefusalOf(made.error());
          }
          revoked.insert(revoked.end(), made->begin(), made->end());
        } else if (Status done = store::RevokeKey(context_.store(), tenant, key_id, calls);
                   !done.ok()) {
          return RefusalOf(done.error());
        }
        CheckSwitches();  // at once, not at the next tick
        for (const std::string& id : revoked) {
          (void)context_.recorder().Happened(tenant.name(), "key.revoked",
                                             {{"by", who.key_id},
                                              {"key", id},
                                              {"calls", keep ? "go on" : "end"},
                                              {"with", id == key_id ? "" : key_id}});
        }
        gateway::KeyView view = ViewOf(**key);
        view.revoked_at = (*key)->revoked_at.value_or(WallTime());
        return view;
      });
}

void DaemonService::ListSwitches(const gateway::Identity& who,
                                 gateway::Reply<std::vector<gateway::SwitchView>> reply) {
  using Views = std::vector<gateway::SwitchView>;
  Answer<Views>(context_, std::move(reply), [this, who]() -> Made<Views> {
    Result<std::vector<store::Switch>> switches =
        who.all_tenants ? store::ListSwitches(context_.store(), store::AllTenants{})
                        : store::ListSwitches(context_.store(), who.tenant);
    if (!switches.ok()) {
      return RefusalOf(switches.error());
    }
    Views views;
    for (const store::Switch& found : *switches) {
      if (found.on) {
        views.push_back(ViewOf(found));
      }
    }
    return views;
  });
}

void DaemonService::SetSwitch(const gateway::Identity& who, const gateway::SwitchTarget& target,
                              const std::string& reason,
                              gateway::Reply<gateway::SwitchView> reply) {
  AnswerIfStanding<gateway::SwitchView>(
      context_, who, std::move(reply), [this, who, target, reason]() -> Made<gateway::SwitchView> {
        const Made<store::TenantId> tenant = TenantOf(context_.store(), who, target);
        if (!tenant.ok()) {
          return tenant.refusal();
        }
        if (std::optional<gateway::Refusal> no = FindMistake(tenant.value(), target)) {
          return std::move(*no);
        }
        if (Status set = store::SetSwitch(context_.store(), tenant.value(),
                                          ChangeOf(who, target, true, reason));
            !set.ok()) {
          return RefusalOf(set.error());
        }
        CheckSwitches();  // at once, not at the next tick
        TellSwitch(context_.recorder(), who, tenant->name(), target, "switch.on", reason);
        return gateway::SwitchView{.target = target,
                                   .tenant = tenant.value(),
                                   .reason = reason,
                                   .set_by = who.key_id,
                                   .set_at = WallTime()};
      });
}

// Whether the target is there at all. A switch for a name that is misspelt would stop nothing and look as if it did.
std::optional<gateway::Refusal> DaemonService::FindMistake(const store::TenantId& tenant,
                                                           const gateway::SwitchTarget& target) {
  Result<bool> known = true;
  std::string hint;
  switch (target.scope) {
    case gateway::SwitchTarget::Scope::kTool: {
      const std::vector<call::ShelfEntry> tools = context_.shelf().List();
      known = target.name == audit::kRunTool ||
              std::any_of(tools.begin(), tools.end(),
                          [&](const call::ShelfEntry& entry) { return entry.name == target.name; });
      hint = "GET /v1/tools lists them";
      break;
    }
    case gateway::SwitchTarget::Scope::kAgent: {
      known = store::AgentIsKnown(context_.store(), tenant, target.name);
      const std::shared_ptr<const call::FileConfig> config = context_.live_config.current();
      if (known.ok() && !*known) {
        known = std::any_of(config->peers.begin(), config->peers.end(), [&](const auto& peer) {
          return peer.tenant == tenant && peer.agent == target.name;
        });
      }
      hint = "an agent is known by its keys, its [[peer]], its sessions or its calls";
      break;
    }
    case gateway::SwitchTarget::Scope::kSession: {
      const Result<std::optional<store::Session>> found =
          store::FindSession(context_.store(), tenant, target.name);
      known = found.ok() ? Result<bool>(found->has_value()) : Result<bool>(found.error());
      hint = "GET /v1/sessions lists them";
      break;
    }
    case gateway::SwitchTarget::Scope::kTenant:
      break;  // TenantOf has found it
    case gateway::SwitchTarget::Scope::kBreaker:
      return gateway::Refusal{.kind = gateway::RefusalKind::kInvalid,
                              .code = "switch.breaker",
                              .message = "a breaker pauses by itself, when calls are denied",
                              .hint = "stop the agent, or the tool"};
  }
  if (!known.ok()) {
    return RefusalOf(known.error());
  }
  if (*known) {
    return std::nullopt;
  }
  return Unknown("switch.unknown",
                 fmt::format("there is no {} of that name to stop",
                             store::SwitchKindName(KindOf(target.scope))),
                 hint);
}

void DaemonService::ClearSwitch(const gateway::Identity& who, const gateway::SwitchTarget& target,
                                gateway::Reply<gateway::Nothing> reply) {
  AnswerIfStanding<gateway::Nothing>(
      context_, who, std::move(reply), [this, who, target]() -> Made<gateway::Nothing> {
        const Made<store::TenantId> tenant = TenantOf(context_.store(), who, target);
        if (!tenant.ok()) {
          return tenant.refusal();
        }
        if (std::optional<gateway::Refusal> no = OwnPause(who, target)) {
          return std::move(*no);
        }
        const Result<bool> on = store::IsSwitchedOn(context_.store(), tenant.value(),
                                                    KindOf(target.scope), target.name);
        if (!on.ok()) {
          return RefusalOf(on.error());
        }
        if (!*on) {
          return Unknown("switch.unknown", "no such switch is on", "GET /v1/switches lists them");
        }
        if (Status cleared = store::SetSwitch(context_.store(), tenant.value(),
                                              ChangeOf(who, target, false, ""));
            !cleared.ok()) {
          return RefusalOf(cleared.error());
        }
        TellSwitch(context_.recorder(), who, tenant->name(), target, "switch.off", "");
        return gateway::Nothing{};
      });
}

gateway::Readiness DaemonService::GetReadiness() {
  gateway::Readiness readiness;
  const bool room = !context_.reserve.full();
  readiness.checks = {{"store", store_ok_ && !behind_, ""},
                      {"log", log_ok_.load(), ""},
                      {"disk", room, room ? "" : "the disk of the state directory is full"}};
  readiness.ready = store_ok_ && log_ok_ && room && !behind_;
  return readiness;
}

}  // namespace coffer::daemon
