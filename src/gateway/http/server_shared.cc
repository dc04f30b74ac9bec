// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/server_shared.h"

#include <algorithm>

namespace coffer::gateway {

std::string_view ServerShared::Date() {
  const Nanos now = WallTime();
  const int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  if (second != date_second_) {
    date_second_ = second;
    date_ = HttpDate(now);
  }
  return date_;
}

std::shared_ptr<void> ServerShared::Begin(const store::TenantId& tenant) {
  const HttpLimits& limits = api.config.limits;
  size_t& count = progress_->of_tenant[tenant];
  if (count >= limits.requests_per_tenant ||
      count >= limits.connections - std::min(progress_->all, limits.connections)) {
    return nullptr;
  }
  ++count;
  ++progress_->all;
  return {progress_.get(), [progress = progress_, tenant](void*) {
            --progress->all;
            if (--progress->of_tenant[tenant] == 0) {
              progress->of_tenant.erase(tenant);
            }
          }};
}

}  // namespace coffer::gateway
