// SPDX-License-Identifier: Apache-2.0
#include "policy/call_budget.h"

#include <algorithm>

namespace coffer::policy {
namespace {

// Less than this starts no program.
constexpr Nanos kLeastTime = std::chrono::milliseconds(10);
constexpr uint64_t kLeastMemory = 1ULL << 20;

}  // namespace

bool CallBudget::CountRequest() {
  if (requests_left_ == 0) {
    return false;
  }
  --requests_left_;
  return true;
}

uint64_t CallBudget::TakeRequests(uint64_t wanted) {
  const auto taken = static_cast<uint32_t>(std::min<uint64_t>(wanted, requests_left_ / 2));
  requests_left_ -= taken;
  return taken;
}

Nanos CallBudget::CpuLeft() const {
  Nanos left = limits_.cpu - std::min(cpu_spent_, limits_.cpu);
  for (const auto& [id, granted] : running_) {
    left -= std::min(granted.cpu, left);
  }
  return left;
}

uint64_t CallBudget::MemoryLeft() const {
  uint64_t left = limits_.memory;
  for (const auto& [id, granted] : running_) {
    left -= std::min(granted.memory, left);
  }
  return left;
}

bool CallBudget::Fits(const Limits& wanted) const {
  return running_.empty() || (std::min(wanted.memory, limits_.memory) <= MemoryLeft() &&
                              std::min(wanted.cpu, limits_.cpu) <= CpuLeft());
}

Result<Limits> CallBudget::Left(Nanos now) const {
  Limits left = limits_;
  left.wall = std::min(limits_.wall, ends_at_ - std::min(now, ends_at_));
  left.cpu = CpuLeft();
  left.memory = MemoryLeft();
  if (left.wall < kLeastTime) {
    return Refused("limit.wall", "the run that makes this call has no time left");
  }
  if (left.cpu < kLeastTime) {
    return Refused("limit.cpu", "the calls of this run have used up its CPU time",
                   "give the run more: --cpu");
  }
  if (left.memory < kLeastMemory) {
    return Refused("limit.memory", "the calls of this run hold all of its memory",
                   "give the run more: --memory");
  }
  return left;
}

void CallBudget::Begin(const std::string& call_id, const Limits& granted) {
  running_[call_id] = granted;
}

void CallBudget::End(const std::string& call_id, Nanos cpu_used) {
  if (running_.erase(call_id) > 0) {
    cpu_spent_ += std::max(cpu_used, Nanos(0));
  }
}

}  // namespace coffer::policy
