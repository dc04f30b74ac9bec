// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that keeps requests within memory and in turn.
#include "daemon/service.h"

namespace coffer::daemon {
namespace {

gateway::Refusal ShareHeld(FairQueue::Holder full) {
  gateway::Refusal refusal;
  refusal.kind = gateway::RefusalKind::kUnavailable;
  refusal.code = "busy.memory";
  refusal.message = full == FairQueue::Holder::kKey
                        ? "bodies and unread answers of this key have its share of what the "
                          "tenant may have in memory"
                        : "bodies and unread answers of this tenant have its share of memory";
  refusal.hint = "read the answers that are on their way, and come back";
  refusal.retry_after = std::chrono::seconds(1);
  return refusal;
}

}  // namespace

std::optional<gateway::Refusal> DaemonService::CheckRoom(const gateway::Asker& asker) {
  return HasRoom(LaneOf(&asker)) ? std::nullopt : std::optional(MemoryFull());
}

// Past the budget the keys are refused that hold most of their tenant's, of the tenants that hold
// most of what is counted; well past it these tenants as a whole, so that one with many keys gets no
// further than one with few. If what is counted is little, it does not explain where the memory is,
// and all are refused.
bool DaemonService::HasRoom(const Lane& lane) {
  MemoryBudget& memory = context_.memory;
  if (!memory.Past()) {
    return true;
  }
  const FairQueue& queue = context_.workers().queue();
  if (memory.FarPast() || queue.counts().bytes < memory.limit() / 4) {
    return false;
  }
  if (lane.tenant == kStrangers || !queue.HoldsMuch(lane.tenant)) {
    return true;
  }
  return !memory.WellPast() && !queue.KeyHoldsMuch(lane);
}

gateway::Answer<std::shared_ptr<void>> DaemonService::Hold(const gateway::Asker& asker,
                                                           size_t bytes) {
  FairQueue::Holding held = context_.workers().queue().Hold(LaneOf(&asker), bytes);
  if (held.handle == nullptr) {
    return ShareHeld(held.full);
  }
  return std::move(held.handle);
}

std::shared_ptr<void> DaemonService::HoldAnyway(const gateway::Asker& asker, size_t bytes) {
  return context_.workers().queue().HoldAnyway(LaneOf(&asker), bytes);
}

bool DaemonService::Offload(const gateway::Asker& asker, std::function<void()> work) {
  return context_.workers().Submit(LaneOf(&asker), {std::move(work), nullptr, true});
}

void DaemonService::Continue(const gateway::Asker& asker, std::function<void()> work) {
  context_.workers().queue().AddRest(LaneOf(&asker), {std::move(work), nullptr, true});
}

}  // namespace coffer::daemon
