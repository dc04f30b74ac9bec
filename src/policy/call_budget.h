// SPDX-License-Identifier: Apache-2.0
//
// What the calls that one call makes may use together: no more than the limits of the call that makes them.
//
// Its wall time is theirs, so none outlives it. Their memory at the same time, and their CPU time
// in all, are bounded by its own limits once more; what it uses itself is not counted here. Every
// other limit holds for each of them. A request counts when it is made, whatever becomes of it, so
// the number of records is bounded too. Pure: the owner brings the time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "policy/envelope.h"

namespace coffer::policy {

class CallBudget {
 public:
  // `ends_at` is on the clock that the owner uses.
  CallBudget(const Limits& limits, uint32_t most_requests, Nanos ends_at)
      : limits_(limits), requests_left_(most_requests), ends_at_(ends_at) {}

  // False: there were as many as there may be.
  bool CountRequest();
  // For a call that makes calls itself: as many of `wanted` as half of what is left. They are gone here.
  uint64_t TakeRequests(uint64_t wanted);

  // True if a call with these limits has all that it wants beside those that run, or if none runs.
  bool Fits(const Limits& wanted) const;

  // The most that a call which begins now may have. kRefused, class limit.*: nothing is left.
  Result<Limits> Left(Nanos now) const;

  // `granted` is at most what Left said.
  void Begin(const std::string& call_id, const Limits& granted);
  // The granted time above `cpu_used` becomes free for other calls.
  void End(const std::string& call_id, Nanos cpu_used);

 private:
  Nanos CpuLeft() const;
  uint64_t MemoryLeft() const;

  const Limits limits_;
  uint32_t requests_left_;
  const Nanos ends_at_;
  Nanos cpu_spent_{0};
  std::map<std::string, Limits> running_;
};

}  // namespace coffer::policy
