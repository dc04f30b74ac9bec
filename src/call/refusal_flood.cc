// SPDX-License-Identifier: Apache-2.0
#include "call/refusal_flood.h"

#include <algorithm>
#include <utility>

namespace coffer::call {
namespace {

// Of a receipt that is shared: its own, and the event with the count.
constexpr uint64_t kRecordsOfShared = 2;

constexpr Nanos kSecond = std::chrono::seconds(1);

int64_t SecondOf(Nanos time) { return time / kSecond; }

}  // namespace

Nanos RefusalFlood::WaitFor(const store::TenantId& tenant, Nanos now) const {
  const auto paid = paid_.find(tenant);
  if (paid == paid_.end()) {
    return Nanos(0);
  }
  const auto most = static_cast<int64_t>(allowance_.records - kRecordsOfShared);
  return std::max(paid->second - now - most * allowance_.each, Nanos(0));
}

void RefusalFlood::Charge(const store::TenantId& tenant, Nanos now, uint64_t records) {
  Nanos& paid = paid_[tenant];
  paid = std::max(paid, now) + static_cast<int64_t>(records) * allowance_.each;
}

std::optional<RefusalFlood::Shared> RefusalFlood::FindShared(const Whose& whose, Nanos now) {
  const auto found = groups_.find(whose);
  if (found == groups_.end() || now >= found->second.over) {
    return std::nullopt;
  }
  Counted& counted = found->second.counted;
  ++counted.count;
  counted.until = now;
  return found->second.shared;
}

RefusalFlood::Answer RefusalFlood::TakeSpent(const Whose& all, Nanos now) {
  if (std::optional<Shared> shared = FindShared(all, now)) {
    return {std::move(shared), std::nullopt};
  }
  Charge(all.tenant, now, kRecordsOfShared);
  return {std::nullopt, all};
}

RefusalFlood::Answer RefusalFlood::Take(const Whose& whose, Nanos now) {
  const Whose others = AllOf(whose.tenant);
  if (WaitFor(whose.tenant, now) > Nanos(0)) {
    return TakeSpent(others, now);
  }
  const int64_t second = SecondOf(now);
  Second& current = seconds_[whose.tenant];
  if (current.second != second) {
    current = {second, 0, 0};
  }
  if (current.written < kPerSecond) {
    ++current.written;
    Charge(whose.tenant, now);
    return {};
  }
  for (const Whose& one : {whose, others}) {
    if (std::optional<Shared> shared = FindShared(one, now)) {
      return {std::move(shared), std::nullopt};
    }
    if (current.shared < kMostShared) {
      Charge(whose.tenant, now, kRecordsOfShared);
      return {std::nullopt, one};
    }
  }
  Charge(whose.tenant, now, kRecordsOfShared);
  return {std::nullopt, others};
}

void RefusalFlood::Share(const Whose& whose, Shared shared, Nanos now) {
  const auto found = groups_.find(whose);
  if (found != groups_.end()) {
    if (now < found->second.over) {
      return;
    }
    Retire(found->second);
  }
  const int64_t second = SecondOf(now);
  if (const auto current = seconds_.find(whose.tenant);
      current != seconds_.end() && current->second.second == second) {
    ++current->second.shared;
  }
  Nanos over = (second + 1) * kSecond;
  if (whose == AllOf(whose.tenant)) {
    over = std::max(over, now + WaitFor(whose.tenant, now));
  }
  const std::string call_id = shared.call_id;
  groups_.insert_or_assign(whose, Group{over, std::move(shared), {whose, call_id, 0, now, now}});
}

void RefusalFlood::Retire(const Group& group) {
  if (group.counted.count > 0) {
    over_.push_back(group.counted);
  }
}

std::vector<RefusalFlood::Counted> RefusalFlood::TakeCounts(Nanos now) {
  const int64_t second = SecondOf(now);
  std::erase_if(groups_, [&](const auto& entry) {
    if (now < entry.second.over) {
      return false;
    }
    Retire(entry.second);
    return true;
  });
  std::erase_if(seconds_, [&](const auto& entry) { return entry.second.second != second; });
  std::erase_if(paid_, [&](const auto& entry) { return entry.second <= now; });
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
