// SPDX-License-Identifier: Apache-2.0
//
// What is measured: every metric by its name, its words and its closed lists of labels. docs/METRICS.md says the same
// for people, and a test holds the two together.
#pragma once

#include <cstddef>
#include <span>

#include "audit/metrics/metrics_registry.h"

namespace coffer::audit {

enum class Metric : uint8_t {
  kCalls,
  kCallErrors,
  kCallDuration,
  kSandboxStart,
  kQueueWait,
  kPolicyEval,
  kCallsRunning,
  kDenials,
  kCapBreaches,
  kIncidents,
  kAlerts,
  kBreakerTrips,
  kAuditAppend,
  kAuditLogSize,
  kAuditPending,
  kAuditLost,
  kHttpRequests,
  kDeliveries,
  kBuildInfo,
  kResidentBytes,
  kOpenFiles,
  kCpuSeconds,
  kStartTime,
};

// In the order of Metric.
std::span<const MetricSpec> MetricSpecs();

}  // namespace coffer::audit
