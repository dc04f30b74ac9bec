// SPDX-License-Identifier: Apache-2.0
//
// The counters of the daemon: one method per kind of event.
//
// Nothing here decides and nothing fails; the code that sees an event counts it once. Names that come from outside (a
// tool that was asked for, a path) go through closed lists, see metrics_registry.h. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "audit/metrics/metrics_registry.h"
#include "audit/metrics/metrics_table.h"
#include "audit/receipt.h"
#include "base/clock.h"

namespace coffer::audit {

// The process, as the kernel sees it.
struct ProcessUse {
  double resident_bytes = 0;
  double open_files = 0;
  double cpu_seconds = 0;
  double started_at = 0;  // seconds since 1970
};

// A dry run: nothing was refused and nothing ran.
bool IsRehearsal(const Receipt& receipt);

class Metrics {
 public:
  Metrics() : registry_(MetricSpecs()) {}

  void AllowTools(const std::vector<std::string>& names) { registry_.Allow("tool", names); }
  void AllowRoutes(const std::vector<std::string>& paths) { registry_.Allow("route", paths); }

  // A call has ended, or was refused. Rehearsals are not counted.
  void CallEnded(const Receipt& receipt);
  // Its boundary is there; is gone.
  void CallRuns(std::string_view tenant);
  void CallIsOver(std::string_view tenant);

  void Waited(std::string_view tenant, Nanos time);
  void Evaluated(std::string_view tenant, Nanos time);
  void Appended(std::string_view tenant, Nanos time);
  void LogGrew(uint64_t records);
  void Happened(std::string_view tenant, std::string_view incident_kind);
  void Alerted(std::string_view tenant, std::string_view kind);
  void BreakerTripped(std::string_view tenant, std::string_view tool);
  // `tenant` is empty before the client is known.
  void Answered(std::string_view tenant, std::string_view route, std::string_view method,
                int status);
  void Measured(const ProcessUse& use);
  // How much it is by now.
  void Delivered(uint64_t sent, uint64_t failed, uint64_t dropped);
  void Unwritten(uint64_t pending, uint64_t lost);

  std::string Print(const store::TenantId& tenant) const { return registry_.Print(tenant); }
  std::string Print(store::AllTenants all) const { return registry_.Print(all); }

 private:
  void Add(std::string_view tenant, Metric metric, MetricRegistry::Labels labels, double by = 1) {
    registry_.Add(tenant, static_cast<size_t>(metric), labels, by);
  }
  void Observe(std::string_view tenant, Metric metric, MetricRegistry::Labels labels, Nanos time);

  MetricRegistry registry_;
};

}  // namespace coffer::audit
