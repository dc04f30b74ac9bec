// SPDX-License-Identifier: Apache-2.0
//
// What tools usually do, hour by hour: for each tenant, tool and measure how many samples there were, their sum and the
// sum of their squares. What is made of it is watch/'s affair.
//
// Writers add to what is there, so several processes count together. Committed, not on disk: a loss of power costs the
// last seconds of a statistic.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/tenant.h"

namespace coffer::store {

struct BaselineHour {
  std::string tool;
  std::string measure;
  int64_t hour = 0;  // since 1970
  uint64_t samples = 0;
  double total = 0;
  double squares = 0;
};

// All of them or none.
Status AddBaselines(Store& store, const TenantId& tenant, std::span<const BaselineHour> hours);
// Of one tool, from the hour `since` on, by measure and hour.
Result<std::vector<BaselineHour>> ReadBaselines(Store& store, const TenantId& tenant,
                                                std::string_view tool, int64_t since);
// Forgets what is older than the hour `before`; how many rows went. Looks at every row: for once in a while.
Result<int64_t> PruneBaselines(Store& store, AllTenants, int64_t before);

}  // namespace coffer::store
