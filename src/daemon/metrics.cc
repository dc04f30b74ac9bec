// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics.h"

#include "call/incidents.h"
#include "daemon/metrics_process.h"
#include "gateway/http/route.h"

namespace coffer::daemon {
namespace {

constexpr uint32_t kFlushEvery = 20;  // ticks: five seconds

bool Same(const call::AnomalyConfig& a, const call::AnomalyConfig& b) {
  return a.enabled == b.enabled && a.window == b.window && a.deviations == b.deviations &&
         a.rate_factor == b.rate_factor;
}

std::optional<uint64_t> UsedOf(const audit::Receipt& receipt, std::string_view name) {
  for (const auto& [cap, use] : receipt.limits) {
    if (cap == name) {
      return use.used;
    }
  }
  return std::nullopt;
}

watch::CallMeasures MeasuresOf(const audit::Receipt& receipt) {
  watch::CallMeasures call;
  call.at = receipt.finished_at;
  for (const audit::Denial& denial : receipt.denials) {
    call.denials += denial.count;
  }
  if (receipt.started_at.count() != 0) {
    call.duration = receipt.finished_at - receipt.requested_at;
    if (const std::optional<uint64_t> cpu = UsedOf(receipt, "cpu")) {
      call.cpu = Nanos(*cpu);
    }
    call.memory = UsedOf(receipt, "memory");
    call.output = receipt.output_produced;
  }
  return call;
}

}  // namespace

Meter::Meter() {
  use_.started_at = std::chrono::duration<double>(WallTime()).count();
  std::vector<std::string> paths;
  for (const gateway::Route& route : gateway::Routes()) {
    paths.emplace_back(route.path);
  }
  metrics_.AllowRoutes(paths);
}

void Meter::Begin(store::Store& store, const call::ToolShelf& shelf, const LiveConfig& live_config,
                  std::function<void(const watch::Alert&)> told) {
  store_ = &store;
  shelf_ = &shelf;
  live_config_ = &live_config;
  told_ = std::move(told);
  in_force_.enabled = false;
  Tick();
}

std::shared_ptr<watch::Anomalies> Meter::anomalies() const {
  const std::lock_guard lock(mutex_);
  return anomalies_;
}

void Meter::LearnTools() {
  std::vector<std::string> names;
  for (const call::ShelfEntry& entry : shelf_->List()) {
    if (entry.tool != nullptr) {
      names.push_back(entry.name);
    }
  }
  metrics_.AllowTools(names);
}

void Meter::CallEnded(const audit::Receipt& receipt) {
  metrics_.CallEnded(receipt);
  for (const std::string_view kind : call::IncidentKindsOf(receipt)) {
    metrics_.Happened(receipt.identity.tenant.name(), kind);
  }
  const std::shared_ptr<watch::Anomalies> watched = anomalies();
  // Baselines for names that are not tools would let a client fill the store.
  if (watched != nullptr && shelf_->Find(receipt.identity.tool) != nullptr &&
      !audit::IsRehearsal(receipt)) {
    (void)watched->Observe(receipt.identity.tenant, receipt.identity.tool, MeasuresOf(receipt));
  }
}

void Meter::Tick() {
  if (store_ == nullptr) {
    return;
  }
  LearnTools();
  const call::AnomalyConfig wanted = live_config_->current()->anomaly;
  std::shared_ptr<watch::Anomalies> flushed;
  {
    const std::lock_guard lock(mutex_);
    const bool changed = !Same(wanted, in_force_);
    if (changed || ++ticks_ % kFlushEvery == 0) {
      flushed = anomalies_;
    }
    if (changed) {
      in_force_ = wanted;
      watch::AnomalyRules rules;
      rules.window = wanted.window;
      rules.deviations = static_cast<double>(wanted.deviations);
      rules.rate_factor = static_cast<double>(wanted.rate_factor);
      anomalies_ = wanted.enabled ? std::make_shared<watch::Anomalies>(
                                        *store_, rules,
                                        [this](const watch::Alert& alert) {
                                          metrics_.Alerted(alert.tenant.name(), alert.measure);
                                          if (told_) {
                                            told_(alert);
                                          }
                                        })
                                  : nullptr;
    }
  }
  if (flushed != nullptr) {
    (void)flushed->Flush();
  }
}

void Meter::End() {
  std::shared_ptr<watch::Anomalies> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(anomalies_);
  }
  if (last != nullptr) {
    (void)last->Flush();
  }
}

gateway::Answer<std::string> Meter::Print(const gateway::Identity& who) {
  if (who.all_tenants) {
    audit::ProcessUse use = use_;
    ReadProcessUse(use);
    metrics_.Measured(use);
    if (deliveries_) {
      const DeliveryCounts counts = deliveries_();
      metrics_.Delivered(counts.sent, counts.failed, counts.dropped);
    }
    if (recorder_) {
      const RecorderCounts counts = recorder_();
      metrics_.Unwritten(counts.pending, counts.lost);
    }
    return metrics_.Print(store::AllTenants{});
  }
  return metrics_.Print(who.tenant);
}

}  // namespace coffer::daemon
