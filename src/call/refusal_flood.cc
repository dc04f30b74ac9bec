// SPDX-License-Identifier: Apache-2.0
#include "call/refusal_flood.h"

#include <utility>

namespace coffer::call {
namespace {

int64_t SecondOf(Nanos time) { return time.count() / 1'000'000'000; }

}  // namespace

RefusalFlood::Answer RefusalFlood::Take(const Whose& whose, Nanos now) {
  const int64_t second = SecondOf(now);
  Second& current = seconds_[whose.tenant];
  if (current.second != second) {
    current = {second, 0, 0};
  }
  if (current.written < kPerSecond) {
    ++current.written;
    return {};
  }
  const Whose others{whose.tenant, kOthers, kOthers, kOthers};
  for (const Whose& one : {whose, others}) {
    const auto found = groups_.find(one);
    if (found != groups_.end() && found->second.second == second) {
      Counted& counted = found->second.counted;
      ++counted.count;
      counted.until = now;
      return {found->second.shared, std::nullopt};
    }
    if (current.shared < kMostShared) {
      return {std::nullopt, one};
    }
  }
  return {std::nullopt, others};
}

void RefusalFlood::Share(const Whose& whose, Shared shared, Nanos now) {
  const int64_t second = SecondOf(now);
  const auto found = groups_.find(whose);
  if (found != groups_.end()) {
    if (found->second.second >= second) {
      return;
    }
    Retire(found->second);
  }
  if (const auto current = seconds_.find(whose.tenant);
      current != seconds_.end() && current->second.second == second) {
    ++current->second.shared;
  }
  const std::string call_id = shared.call_id;
  groups_.insert_or_assign(whose, Group{second, std::move(shared), {whose, call_id, 0, now, now}});
}

void RefusalFlood::Retire(const Group& group) {
  if (group.counted.count > 0) {
    over_.push_back(group.counted);
  }
}

std::vector<RefusalFlood::Counted> RefusalFlood::TakeCounts(Nanos now) {
  const int64_t second = SecondOf(now);
  std::erase_if(groups_, [&](const auto& entry) {
    if (entry.second.second == second) {
      return false;
    }
    Retire(entry.second);
    return true;
  });
  std::erase_if(seconds_, [&](const auto& entry) { return entry.second.second != second; });
  return std::exchange(over_, {});
}

uint64_t RefusalFlood::waiting() const {
  uint64_t sum = 0;
  for (const auto& [whose, group] : groups_) {
    sum += group.counted.count;
  }
  for (const Counted& counted : over_) {
    sum += counted.count;
  }
  return sum;
}

}  // namespace coffer::call
