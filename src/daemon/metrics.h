// SPDX-License-Identifier: Apache-2.0
//
// The meter: the daemon's parts report events to it, and a scrape reads it. Feeds the counters
// (audit/metrics/metrics.h) and the baselines (watch/anomaly.h) from one place, so that both see the same calls.
//
// It is there before the store is: requests are counted from the first one on, baselines once Begin was called. Nothing
// here can make a call fail. Thread-safe; CallEnded and Tick may wait for the store, so they are for workers.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "audit/metrics/metrics.h"
#include "audit/receipt.h"
#include "call/tool_shelf.h"
#include "daemon/deliver.h"
#include "daemon/live_config.h"
#include "gateway/service.h"
#include "store/store.h"
#include "watch/anomaly.h"

namespace coffer::daemon {

struct RecorderCounts {
  uint64_t pending = 0;  // receipts that wait for the disk
  uint64_t lost = 0;     // that were too many to wait
};

class Meter {
 public:
  Meter();

  audit::Metrics& metrics() { return metrics_; }

  // From here on baselines are kept, by the rules that hold at each time. `told` gets every alert, on the thread that
  // ended the call. All of them outlive the meter.
  void Begin(store::Store& store, const call::ToolShelf& shelf, const LiveConfig& live_config,
             std::function<void(const watch::Alert&)> told);

  // Asked at every scrape.
  void WatchRecorder(std::function<RecorderCounts()> counts) { recorder_ = std::move(counts); }
  void WatchDeliveries(std::function<DeliveryCounts()> counts) { deliveries_ = std::move(counts); }

  void CallEnded(const audit::Receipt& receipt);

  // For a timer: new tools, new rules, and now and then the baselines into the store.
  void Tick();

  // The last of them, before the store goes.
  void End();

  // What this identity may see: the sums for one who sees all tenants, otherwise its tenant's values.
  gateway::Answer<std::string> Print(const gateway::Identity& who);

 private:
  std::shared_ptr<watch::Anomalies> anomalies() const;
  void LearnTools();

  audit::Metrics metrics_;
  audit::ProcessUse use_;
  store::Store* store_ = nullptr;
  const call::ToolShelf* shelf_ = nullptr;
  const LiveConfig* live_config_ = nullptr;
  std::function<void(const watch::Alert&)> told_;
  std::function<DeliveryCounts()> deliveries_;
  std::function<RecorderCounts()> recorder_;

  mutable std::mutex mutex_;  // of what follows
  call::AnomalyConfig in_force_;
  std::shared_ptr<watch::Anomalies> anomalies_;  // null: switched off, or not begun
  uint32_t ticks_ = 0;
};

}  // namespace coffer::daemon
