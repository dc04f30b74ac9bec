// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/server_shared.h"

#include <algorithm>

#include "base/fair_share.h"

namespace coffer::gateway {
namespace {

// Of the requests in progress that the other keys of its tenant leave, how many a key may have.
constexpr uint64_t kKeyPercent = 75;

Refusal TooManyRequests(const std::string& whose) {
  Refusal refusal;
  refusal.kind = RefusalKind::kUnavailable;
  refusal.code = "busy";
  refusal.message = "too many requests of this " + whose + " are in progress";
  refusal.hint = "wait for answers before you ask for more";
  refusal.retry_after = std::chrono::seconds(1);
  return refusal;
}

}  // namespace

std::string_view ServerShared::Date() {
  const Nanos now = WallTime();
  const int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  if (second != date_second_) {
    date_second_ = second;
    date_ = HttpDate(now);
  }
  return date_;
}

Answer<std::shared_ptr<void>> ServerShared::Begin(const Asker& asker) {
  const HttpLimits& limits = api.config.limits;
  OfTenant& tenant = progress_->tenants[asker.tenant];
  size_t& of_key = tenant.keys[asker.key];
  const size_t others = progress_->all - tenant.all;
  const size_t left = limits.connections - std::min(others, limits.connections);
  const FairShare share{std::min(limits.requests_per_tenant, (left + 1) / 2), kKeyPercent, 1};
  const bool tenant_full = tenant.all >= share.most;
  const bool key_full = of_key > 0 && !share.Leaves(of_key + 1, tenant.all + 1);
  if (tenant_full || key_full) {
    Refusal refusal = TooManyRequests(key_full ? "key" : "tenant");
    Forget(progress_.get(), asker.tenant, asker.key);
    return refusal;
  }
  ++of_key;
  ++tenant.all;
  ++progress_->all;
  return std::shared_ptr<void>(
      progress_.get(), [progress = progress_, tenant = asker.tenant, key = asker.key](void*) {
        OfTenant& ended = progress->tenants.at(tenant);
        --ended.keys.at(key);
        --ended.all;
        --progress->all;
        Forget(progress.get(), tenant, key);
      });
}

void ServerShared::Forget(Progress* progress, const store::TenantId& tenant,
                          const std::string& key) {
  const auto found = progress->tenants.find(tenant);
  if (found->second.keys.at(key) == 0) {
    found->second.keys.erase(key);
  }
  if (found->second.keys.empty()) {
    progress->tenants.erase(found);
  }
}

}  // namespace coffer::gateway
