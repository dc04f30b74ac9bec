// SPDX-License-Identifier: Apache-2.0
#include "audit/metrics/metrics.h"

#include <algorithm>
#include <array>

namespace coffer::audit {
namespace {

constexpr std::string_view kDryRun = "policy.dry_run";

double Seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

// When the command ran, counted from the making of its boundary; nothing if it never did.
std::optional<Nanos> StartTime(const Receipt& receipt) {
  for (const auto& [step, micros] : receipt.steps_us) {
    if (step == "running") {
      return std::chrono::microseconds(micros);
    }
  }
  return std::nullopt;
}

}  // namespace

void Metrics::Observe(std::string_view tenant, Metric metric, MetricRegistry::Labels labels,
                      Nanos time) {
  registry_.Observe(tenant, static_cast<size_t>(metric), labels, Seconds(time));
}

bool IsRehearsal(const Receipt& receipt) {
  return std::any_of(receipt.denials.begin(), receipt.denials.end(),
                     [](const Denial& denial) { return denial.rule == kDryRun; });
}

void Metrics::CallEnded(const Receipt& receipt) {
  if (IsRehearsal(receipt)) {
    return;
  }
  const std::string& tenant = receipt.identity.tenant.name();
  Add(tenant, Metric::kCalls, {receipt.identity.tool, receipt.outcome});
  if (!receipt.error_class.empty()) {
    Add(tenant, Metric::kCallErrors, {receipt.error_class});
  }
  if (receipt.started_at.count() != 0) {
    Observe(tenant, Metric::kCallDuration, {receipt.identity.tool},
            receipt.finished_at - receipt.requested_at);
  }
  if (const std::optional<Nanos> start = StartTime(receipt)) {
    Observe(tenant, Metric::kSandboxStart, {}, *start);
  }
  for (const Denial& denial : receipt.denials) {
    Add(tenant, Metric::kDenials, {denial.surface, denial.rule}, static_cast<double>(denial.count));
  }
  for (const auto& [cap, use] : receipt.limits) {
    if (use.breached) {
      Add(tenant, Metric::kCapBreaches, {receipt.identity.tool, cap});
    }
  }
}

void Metrics::CallRuns(std::string_view tenant) { Add(tenant, Metric::kCallsRunning, {}, 1); }
void Metrics::CallIsOver(std::string_view tenant) { Add(tenant, Metric::kCallsRunning, {}, -1); }

void Metrics::Waited(std::string_view tenant, Nanos time) {
  Observe(tenant, Metric::kQueueWait, {}, time);
}

void Metrics::Evaluated(std::string_view tenant, Nanos time) {
  Observe(tenant, Metric::kPolicyEval, {}, time);
}

void Metrics::Appended(std::string_view tenant, Nanos time) {
  Observe(tenant, Metric::kAuditAppend, {}, time);
}

void Metrics::LogGrew(uint64_t records) {
  registry_.Set({}, static_cast<size_t>(Metric::kAuditLogSize), {}, static_cast<double>(records));
}

void Metrics::Happened(std::string_view tenant, std::string_view incident_kind) {
  Add(tenant, Metric::kIncidents, {incident_kind});
}

void Metrics::Alerted(std::string_view tenant, std::string_view kind) {
  Add(tenant, Metric::kAlerts, {kind});
}

void Metrics::BreakerTripped(std::string_view tenant, std::string_view tool) {
  Add(tenant, Metric::kBreakerTrips, {tool});
}

void Metrics::Answered(std::string_view tenant, std::string_view route, std::string_view method,
                       int status) {
  static constexpr std::array<std::string_view, 6> kClasses = {"",    "1xx", "2xx",
                                                               "3xx", "4xx", "5xx"};
  const auto index = static_cast<size_t>(status / 100);
  Add(tenant, Metric::kHttpRequests,
      {route, method, index < kClasses.size() ? kClasses[index] : kOtherValue});
}

void Metrics::Delivered(uint64_t sent, uint64_t failed, uint64_t dropped) {
  const auto set = [this](std::string_view result, uint64_t count) {
    registry_.Set({}, static_cast<size_t>(Metric::kDeliveries), {result},
                  static_cast<double>(count));
  };
  set("sent", sent);
  set("failed", failed);
  set("dropped", dropped);
}

void Metrics::Unwritten(uint64_t pending, uint64_t lost) {
  registry_.Set({}, static_cast<size_t>(Metric::kAuditPending), {}, static_cast<double>(pending));
  registry_.Set({}, static_cast<size_t>(Metric::kAuditLost), {}, static_cast<double>(lost));
}

void Metrics::Measured(const ProcessUse& use) {
  const auto set = [this](Metric metric, double value) {
    registry_.Set({}, static_cast<size_t>(metric), {}, value);
  };
  set(Metric::kResidentBytes, use.resident_bytes);
  set(Metric::kOpenFiles, use.open_files);
  set(Metric::kCpuSeconds, use.cpu_seconds);
  set(Metric::kStartTime, use.started_at);
}

}  // namespace coffer::audit
