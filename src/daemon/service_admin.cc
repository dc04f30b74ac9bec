// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that is about tools, keys and switches, and the timer that enforces them.
#include <fmt/format.h>

#include <map>

#include "base/print.h"
#include "daemon/service.h"
#include "daemon/views.h"
#include "store/key.h"
#include "store/recovery.h"
#include "store/switches.h"

namespace coffer::daemon {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr uint32_t kSweepEvery = 4;
constexpr size_t kMaxKeys = 1000;

template <typename T>
using Made = gateway::Answer<T>;

// The tenant's own name of what a switch is about.
store::SwitchChange ChangeOf(const gateway::Identity& who, const gateway::SwitchTarget& target,
                             bool on, const std::string& reason) {
  return {KindOf(target.scope), target.name, on, who.key_id, reason};
}

// The tools that a switch of the tenant or of the host stops, and why.
Result<std::map<std::string, std::string>> StoppedTools(store::Store& store,
                                                        const gateway::Identity& who) {
  TRY_ASSIGN(const store::TenantId tenant, store::TenantId::Parse(who.tenant));
  TRY_ASSIGN(const std::vector<store::Switch> switches, store::ListSwitches(store, tenant));
  std::map<std::string, std::string> stopped;
  for (const store::Switch& found : switches) {
    if (found.on && (found.kind == store::SwitchKind::kTool ||
                     found.kind == store::SwitchKind::kDisabledTool)) {
      stopped[found.name] = found.why;
    }
  }
  return stopped;
}

void MarkStopped(const std::map<std::string, std::string>& stopped, gateway::ToolView& view) {
  if (const auto found = stopped.find(view.name); found != stopped.end()) {
    view.state = "disabled";
    view.problem = found->second.empty() ? "an operator disabled it" : "disabled: " + found->second;
  }
}

// Those an identity may see: of its tenant, or of all.
Result<store::Page<store::ApiKey>> KeysFor(store::Store& store, const gateway::Identity& who,
                                           const store::TenantId& tenant) {
  const store::PageRequest page{kMaxKeys, ""};
  return who.all_tenants ? store::ListKeys(store, store::AllTenants{}, page)
                         : store::ListKeys(store, tenant, page);
}

// The switch is thrown already: that it cannot be recorded now must not undo it.
void TellSwitch(call::Recorder& recorder, const gateway::Identity& who,
                const gateway::SwitchTarget& target, std::string_view event,
                const std::string& reason) {
  (void)recorder.Happened(who.tenant, event,
                          {{"by", who.key_id},
                           {"scope", std::string(store::SwitchKindName(KindOf(target.scope)))},
                           {"name", target.name},
                           {"reason", reason}});
}

// Once, for whoever reads our stderr; /readyz says it all the time.
void TellChange(std::atomic<bool>& was_good, const Status& now, std::string_view good_news) {
  if (was_good.exchange(now.ok()) == now.ok()) {
    return;
  }
  if (now.ok()) {
    PrintError(fmt::format("coffer: note: {}", good_news));
  } else {
    PrintError(now.error());
  }
}

}  // namespace

DaemonService::DaemonService(ServiceContext& context, ServiceOptions options)
    : context_(context), options_(options) {
  timer_ = context_.loop.After(kTick, [this] { Tick(); });
}

DaemonService::~DaemonService() = default;

void DaemonService::Tick() {
  const std::shared_ptr<void> keep = std::move(timer_);  // we are running inside it
  if (!context_.workers().Submit([this] {
        CheckSwitches();
        EndExpired();
        if (ticks_++ % kSweepEvery == 0) {
          SweepWorkspaces();
          SettleDead();
          PruneOld();
        }
        context_.meter.Tick();
        Status kept = context_.store().Inspect();
        if (kept.ok()) {
          kept = context_.store().Maintain();
        }
        TellChange(store_ok_, kept, "the store can be used again");
        TellChange(log_ok_, context_.recorder().WritePending(), "the record can be written again");
        behind_ = false;
      })) {
    behind_ = true;
  }
  timer_ = context_.loop.After(kTick, [this] { Tick(); });
}

// On a worker. `coffer call` beside us may have been killed: its boundary died with it, and only the record is left.
void DaemonService::SettleDead() {
  if (const Result<std::vector<store::RecoveredCall>> dead =
          store::RecoverAgain(context_.store(), store::AllTenants{});
      dead.ok()) {
    (void)context_.recorder().Settle(*dead);
  }
}

// On a worker. A switch may have been flipped by another process.
void DaemonService::CheckSwitches() {
  const Result<int64_t> generation = store::SwitchGeneration(context_.store());
  if (!generation.ok() || *generation == switch_generation_) {
    return;
  }
  switch_generation_ = *generation;
  context_.loop.Post([this] {
    for (const auto& [id, flight] : calls_) {
      KillIfStopped(id, flight.request);
    }
  });
}

void DaemonService::KillIfStopped(const std::string& call_id, const call::ToolRequest& request) {
  context_.workers().SubmitAlways([this, call_id, request] {
    const Result<std::optional<store::Switch>> stopped = store::FindSwitch(
        context_.store(), request.tenant, {request.tool, request.agent, request.session_id});
    if (stopped.ok() && *stopped) {
      context_.launcher().Kill(call_id);
    }
  });
}

void DaemonService::KillWhere(const std::function<bool(const call::ReadyCall&)>& stopped) {
  for (const auto& [id, flight] : calls_) {
    if (flight.call != nullptr && stopped(flight.call->ready())) {
      context_.launcher().Kill(id);
    }
  }
}

void DaemonService::ListTools(const gateway::Identity& who,
                              gateway::Reply<std::vector<gateway::ToolView>> reply) {
  using Views = std::vector<gateway::ToolView>;
  Answer<Views>(context_, std::move(reply), [this, who]() -> Made<Views> {
    const Result<std::map<std::string, std::string>> stopped = StoppedTools(context_.store(), who);
    if (!stopped.ok()) {
      return RefusalOf(stopped.error());
    }
    Views views;
    for (const call::ShelfEntry& entry : context_.shelf().List()) {
      views.push_back(ViewOf(entry, false));
      MarkStopped(*stopped, views.back());
    }
    return views;
  });
}

void DaemonService::GetTool(const gateway::Identity& who, const std::string& name,
                            gateway::Reply<gateway::ToolView> reply) {
  Answer<gateway::ToolView>(context_, std::move(reply),
                            [this, who, name]() -> Made<gateway::ToolView> {
                              const Result<std::map<std::string, std::string>> stopped =
                                  StoppedTools(context_.store(), who);
                              if (!stopped.ok()) {
                                return RefusalOf(stopped.error());
                              }
                              for (const call::ShelfEntry& entry : context_.shelf().List()) {
                                if (entry.name == name && entry.tool != nullptr) {
                                  gateway::ToolView view = ViewOf(entry, true);
                                  MarkStopped(*stopped, view);
                                  return view;
                                }
                              }
                              return gateway::Refusal{gateway::RefusalKind::kNotFound,
                                                      "tool.unknown",
                                                      "there is no such tool",
                                                      "GET /v1/tools lists them",
                                                      {},
                                                      "",
                                                      {}};
                            });
}

void DaemonService::CreateKey(const gateway::Identity& who, gateway::KeyRequest request,
                              gateway::Reply<gateway::NewKey> reply) {
  Answer<gateway::NewKey>(
      context_, std::move(reply), [this, who, request]() -> Made<gateway::NewKey> {
        Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
        if (!tenant.ok()) {
          return RefusalOf(tenant.error());
        }
        store::KeyRequest asked;
        asked.role = RoleOf(request.role);
        asked.agent = request.agent;
        asked.label = request.label;
        asked.lifetime = request.expires_in.value_or(std::chrono::seconds(0));
        // Who gives power away is on record before it is given.
        if (const Status told =
                context_.recorder().Event(who.tenant, "key.created",
                                          {{"by", who.key_id},
                                           {"role", std::string(store::RoleName(asked.role))},
                                           {"agent", asked.agent}});
            !told.ok()) {
          return RefusalOf(told.error());
        }
        Result<store::NewKey> made = store::CreateKey(context_.store(), *tenant, asked);
        if (!made.ok()) {
          return RefusalOf(made.error());
        }
        return gateway::NewKey{ViewOf(made->key), made->text};
      });
}

void DaemonService::ListKeys(const gateway::Identity& who,
                             gateway::Reply<std::vector<gateway::KeyView>> reply) {
  using Views = std::vector<gateway::KeyView>;
  Answer<Views>(context_, std::move(reply), [this, who]() -> Made<Views> {
    Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
    if (!tenant.ok()) {
      return RefusalOf(tenant.error());
    }
    Result<store::Page<store::ApiKey>> keys = KeysFor(context_.store(), who, *tenant);
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
                              gateway::Reply<gateway::KeyView> reply) {
  Answer<gateway::KeyView>(
      context_, std::move(reply), [this, who, key_id]() -> Made<gateway::KeyView> {
        Result<std::optional<store::ApiKey>> key =
            store::FindKey(context_.store(), store::AllTenants{}, key_id);
        if (!key.ok()) {
          return RefusalOf(key.error());
        }
        if (!*key || ((*key)->tenant.name() != who.tenant && !who.all_tenants)) {
          return gateway::Refusal{gateway::RefusalKind::kNotFound,
                                  "policy.key",
                                  "there is no such key",
                                  "GET /v1/keys lists them",
                                  {},
                                  "",
                                  {}};
        }
        if (Status revoked = store::RevokeKey(context_.store(), (*key)->tenant, key_id);
            !revoked.ok()) {
          return RefusalOf(revoked.error());
        }
        (void)context_.recorder().Happened((*key)->tenant.name(), "key.revoked",
                                           {{"by", who.key_id}, {"key", key_id}});
        gateway::KeyView view = ViewOf(**key);
        view.revoked_at = (*key)->revoked_at.value_or(WallTime());
        return view;
      });
}

void DaemonService::ListSwitches(const gateway::Identity& who,
                                 gateway::Reply<std::vector<gateway::SwitchView>> reply) {
  using Views = std::vector<gateway::SwitchView>;
  Answer<Views>(context_, std::move(reply), [this, who]() -> Made<Views> {
    Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
    if (!tenant.ok()) {
      return RefusalOf(tenant.error());
    }
    Result<std::vector<store::Switch>> switches =
        who.all_tenants ? store::ListSwitches(context_.store(), store::AllTenants{})
                        : store::ListSwitches(context_.store(), *tenant);
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
  Answer<gateway::SwitchView>(
      context_, std::move(reply), [this, who, target, reason]() -> Made<gateway::SwitchView> {
        Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
        Status set = tenant.ok() ? store::SetSwitch(context_.store(), *tenant,
                                                    ChangeOf(who, target, true, reason))
                                 : Status(tenant.error());
        if (!set.ok()) {
          return RefusalOf(set.error());
        }
        CheckSwitches();  // at once, not at the next tick
        TellSwitch(context_.recorder(), who, target, "switch.on", reason);
        return gateway::SwitchView{target, who.tenant, reason, who.key_id, WallTime()};
      });
}

void DaemonService::ClearSwitch(const gateway::Identity& who, const gateway::SwitchTarget& target,
                                gateway::Reply<gateway::Nothing> reply) {
  Answer<gateway::Nothing>(
      context_, std::move(reply), [this, who, target]() -> Made<gateway::Nothing> {
        Result<store::TenantId> tenant = store::TenantId::Parse(who.tenant);
        Status cleared = tenant.ok() ? store::SetSwitch(context_.store(), *tenant,
                                                        ChangeOf(who, target, false, ""))
                                     : Status(tenant.error());
        if (!cleared.ok()) {
          return RefusalOf(cleared.error());
        }
        TellSwitch(context_.recorder(), who, target, "switch.off", "");
        return gateway::Nothing{};
      });
}

gateway::Readiness DaemonService::GetReadiness() {
  gateway::Readiness readiness;
  readiness.checks = {{"store", store_ok_ && !behind_, ""}, {"log", log_ok_.load(), ""}};
  readiness.ready = store_ok_ && log_ok_ && !behind_;
  return readiness;
}

}  // namespace coffer::daemon
