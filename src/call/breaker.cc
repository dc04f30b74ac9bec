// SPDX-License-Identifier: Apache-2.0
#include "call/breaker.h"

#include <algorithm>

#include "audit/metrics/metrics.h"
#include "watch/incident.h"

namespace coffer::call {

bool IsCounted(const audit::Receipt& receipt, const BreakerConfig& config) {
  // A manifest may be called "run", too.
  const bool coffer_run = receipt.identity.tool == audit::kRunTool && receipt.manifest_hash.empty();
  if (config.rule.denials == 0 || coffer_run || receipt.rehearsed || audit::IsRehearsal(receipt)) {
    return false;
  }
  const bool incident =
      std::any_of(receipt.syscalls_denied.begin(), receipt.syscalls_denied.end(),
                  [](const auto& denied) { return watch::FindIncident(denied.first).has_value(); });
  if (config.incidents && incident) {
    return true;
  }
  return std::any_of(receipt.denials.begin(), receipt.denials.end(),
                     [&](const audit::Denial& denial) {
                       return (config.egress && denial.surface == "egress" &&
                               denial.rule != watch::kDatagramRule) ||
                              (config.isolation && denial.surface == "isolation") ||
                              (config.policy && denial.surface == "policy");
                     });
}

}  // namespace coffer::call
