// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that happens by itself: manifests that changed under running calls, and what is old enough to
// be forgotten.
#include <fmt/format.h>

#include "base/print.h"
#include "base/text.h"
#include "daemon/service.h"
#include "policy/manifest/diff.h"
#include "store/retention.h"
#include "store/tenant.h"

namespace coffer::daemon {
namespace {

constexpr Nanos kPruneEvery = std::chrono::minutes(1);
// More than that at once: there is probably more, and the next tick goes on.
constexpr uint64_t kManyRows = 1000;
constexpr size_t kMaxTold = 200;
constexpr int kPartsAtOnce = 4;

// What a call that runs under `before` may do and a new one may not; empty if that is nothing.
std::string TakenAway(const policy::Tool& before, const policy::Tool* now) {
  if (now == nullptr) {
    return "the tool itself";
  }
  std::string text;
  for (const policy::ManifestChange& change :
       policy::DiffManifests(before.manifest, now->manifest)) {
    if (change.kind == policy::ChangeKind::kNarrowed) {
      text += fmt::format("{}{} ({} -> {})", text.empty() ? "" : ", ", change.what,
                          change.before.empty() ? "nothing" : change.before,
                          change.after.empty() ? "nothing" : change.after);
    }
  }
  return Printable(text).substr(0, kMaxTold);
}

}  // namespace

// On a worker. New calls are under the new manifests at once; those that run are told to the operator, who can cancel
// them or flip a switch.
void DaemonService::ReloadTools() {
  const Status loaded = context_.shelf().Reload();
  if (!loaded.ok()) {
    PrintError(loaded.error());
  }
  TellNarrowed();
}

void DaemonService::TellNarrowed() {
  context_.loop.Post([this] {
    for (auto& [id, flight] : calls_) {
      if (flight.call == nullptr) {
        continue;
      }
      const call::ReadyCall& ready = flight.call->ready();
      const std::shared_ptr<const policy::Tool> now =
          context_.shelf().Find(ready.request.identity.tool);
      const std::string hash = now == nullptr ? "" : now->hash;
      if (hash == ready.tool->hash || hash == flight.told) {
        continue;
      }
      flight.told = hash;
      const std::string lost = TakenAway(*ready.tool, now.get());
      if (lost.empty()) {
        continue;
      }
      const std::string tenant = ready.request.identity.tenant.name();
      PrintError(fmt::format(
          "coffer: note: call {} of {} (tenant {}, agent {}) still runs with what its tool may no "
          "longer do: {}; cancel it, or stop the tool with a switch",
          id, ready.request.identity.tool, tenant, Printable(ready.request.identity.agent), lost));
      const std::map<std::string, std::string> detail = {
          {"call", id}, {"tool", ready.request.identity.tool}, {"removed", lost}};
      context_.workers().SubmitAlways([this, tenant, detail] {
        (void)context_.recorder().Happened(tenant, "policy.narrowed", detail);
      });
    }
  });
}

// On a worker.
void DaemonService::PruneOld() {
  const Nanos now = BootTime();
  if (now < next_prune_.load()) {
    return;
  }
  next_prune_ = now + kPruneEvery;
  const Result<std::vector<store::Tenant>> tenants =
      store::ListTenants(context_.store(), store::AllTenants{});
  if (!tenants.ok()) {
    return;
  }
  const std::shared_ptr<const call::FileConfig> rules = context_.live_config.current();
  for (const store::Tenant& tenant : *tenants) {
    const store::Retention& retention = rules->RulesOf(tenant.id).retention;
    const Result<store::Pruned> gone = context_.recorder().Prune(tenant.id, retention);
    if (!gone.ok()) {
      PrintError(gone.error());
      continue;
    }
    if (gone->calls + gone->results + gone->sessions >= kManyRows) {
      next_prune_ = now;
    }
  }
}

// On a worker. A few parts for each tenant at once: others wait for this worker too.
void DaemonService::KeepRoom() {
  context_.reserve.Look();
  const Result<std::vector<store::Tenant>> tenants =
      store::ListTenants(context_.store(), store::AllTenants{});
  if (!tenants.ok()) {
    return;
  }
  const std::shared_ptr<const call::FileConfig> config = context_.live_config.current();
  for (const store::Tenant& tenant : *tenants) {
    const uint64_t most = config->RulesOf(tenant.id).storage.Records(context_.reserve.disk_bytes());
    for (int part = 0; part < kPartsAtOnce; ++part) {
      const Result<uint64_t> gone = context_.recorder().PruneToSize(tenant.id, most);
      if (!gone.ok()) {
        PrintError(gone.error());
      }
      if (!gone.ok() || *gone == 0) {
        break;
      }
    }
  }
}

}  // namespace coffer::daemon
