// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that keeps requests within memory and in turn.
#include "daemon/service.h"

namespace coffer::daemon {

std::optional<gateway::Refusal> DaemonService::CheckRoom() {
  return context_.memory.Past() ? std::optional(MemoryFull()) : std::nullopt;
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
