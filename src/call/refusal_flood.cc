// SPDX-License-Identifier: Apache-2.0
#include "call/refusal_flood.h"

#include <algorithm>

namespace coffer::call {
namespace {

int64_t SecondOf(Nanos time) { return time.count() / 1'000'000'000; }

}  // namespace

bool RefusalFlood::Take(const std::string& tenant, const std::string& agent,
                        const std::string& tool, const std::string& error_class, Nanos now) {
  Second& current = seconds_[tenant];
  if (current.second != SecondOf(now)) {
    current = {SecondOf(now), 0};
  }
  if (current.written < kPerSecond) {
    ++current.written;
    return true;
  }
  Add({tenant, agent, tool, error_class}, {tenant, agent, tool, error_class, 1, now, now});
  return false;
}

void RefusalFlood::Add(Key key, const Counted& counted) {
  Counted added = counted;
  if (counts_.size() >= kMostCounts && !counts_.contains(key)) {
    key = {counted.tenant, kOthers, kOthers, kOthers};
    added.agent = added.tool = added.error_class = kOthers;
  }
  const auto [place, fresh] = counts_.try_emplace(std::move(key), added);
  if (!fresh) {
    Counted& sum = place->second;
    sum.count += added.count;
    sum.since = std::min(sum.since, added.since);
    sum.until = std::max(sum.until, added.until);
  }
}

std::vector<RefusalFlood::Counted> RefusalFlood::TakeCounts(Nanos now) {
  std::vector<Counted> over;
  for (auto at = counts_.begin(); at != counts_.end();) {
    if (SecondOf(at->second.until) != SecondOf(now)) {
      over.push_back(std::move(at->second));
      at = counts_.erase(at);
    } else {
      ++at;
    }
  }
  std::erase_if(seconds_, [&](const auto& entry) { return entry.second.second != SecondOf(now); });
  return over;
}

void RefusalFlood::PutBack(const Counted& counted) {
  Add({counted.tenant, counted.agent, counted.tool, counted.error_class}, counted);
}

uint64_t RefusalFlood::waiting() const {
  uint64_t sum = 0;
  for (const auto& [key, counted] : counts_) {
    sum += counted.count;
  }
  return sum;
}

}  // namespace coffer::call
