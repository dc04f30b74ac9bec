// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that keeps requests within memory and in turn.
#include "daemon/service.h"

namespace coffer::daemon {

std::optional<gateway::Refusal> DaemonService::CheckRoom(const gateway::Asker& asker) {
  return HasRoom(asker.tenant) ? std::nullopt : std::optional(MemoryFull());
}

// Past the budget the tenants are refused that hold most of what is counted. If that is little, it does not explain where the
// memory is, and all are refused.
bool DaemonService::HasRoom(const store::TenantId& tenant) {
  MemoryBudget& memory = context_.memory;
  if (!memory.Past()) {
    return true;
  }
  const FairQueue& queue = context_.workers().queue();
  if (memory.FarPast() || queue.counts().bytes < memory.limit() / 4) {
    return false;
  }
  return tenant == store::TenantId::None() || !queue.HoldsMuch(tenant.name());
}

std::shared_ptr<void> DaemonService::Hold(const gateway::Asker& asker, size_t bytes, Holding how) {
  FairQueue& queue = context_.workers().queue();
  const std::string tenant = LaneOf(&asker).tenant;
  return how == Holding::kAnyway ? queue.HoldAnyway(tenant, bytes) : queue.Hold(tenant, bytes);
}

bool DaemonService::Offload(const gateway::Asker& asker, std::function<void()> work) {
  return context_.workers().Submit(LaneOf(&asker), {std::move(work), nullptr, true});
}

void DaemonService::Continue(const gateway::Asker& asker, std::function<void()> work) {
  context_.workers().queue().AddRest(LaneOf(&asker), {std::move(work), nullptr, true});
}

}  // namespace coffer::daemon
