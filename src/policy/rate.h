// SPDX-License-Identifier: Apache-2.0
//
// Rate limits as arithmetic: sliding windows, burst and concurrency, with the time given from outside.
//
// A window is counted in 60 slices, and a slice counts fully until it has left the window, so that in no window of
// the given length, wherever it begins, more calls are admitted than the limit; the price is that a call may have to
// wait one slice longer than strictly needed. State is a few hundred bytes whatever the limit, so counting cannot be
// used to fill memory. A clock that goes backwards stands still here. Not thread-safe; what is taken is lost on a
// restart unless the owner keeps it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::policy {

// At most `count` in any `window`.
struct RateRule {
  uint64_t count = 0;
  Nanos window{0};
  bool operator==(const RateRule&) const = default;
};

// "10/s", "100/m", "1000/h", "5000/d": 1 to 1,000,000 in one second, minute, hour or day.
Result<RateRule> ParseRate(std::string_view text);
std::string FormatRate(const RateRule& rule);

// No rule means no limit of that kind here; 0 stands for none.
struct RateLimits {
  std::vector<RateRule> calls;
  uint64_t burst = 0;        // calls in any one second
  uint64_t concurrency = 0;  // calls that run at the same time
  bool operator==(const RateLimits&) const = default;
};

struct RateVerdict {
  bool allowed = true;
  Nanos retry_after{
      0};  // when it is worth asking again; 0 if allowed, or if it depends on a running call
  std::string reason;  // "100/m", "burst of 5", "4 at a time"; empty if allowed
};

class SlidingWindow {
 public:
  explicit SlidingWindow(RateRule rule) : rule_(rule) {}
  // How long until one more fits; 0 is now.
  Nanos WaitAt(Nanos now) const;
  void Take(Nanos now);
  const RateRule& rule() const { return rule_; }
  // How many count at `now`.
  uint64_t UsedAt(Nanos now) const;

 private:
  static constexpr int64_t kSlices = 60;
  int64_t SliceLength() const;
  int64_t SliceOf(Nanos now) const;

  RateRule rule_;
  std::array<uint64_t, kSlices + 1> taken_{};
  int64_t newest_ = 0;  // the slice in which Take was last called
};

// All limits of one owner (a tool, an agent, a tenant). Peek before Take: a call asks several owners and takes from
// all or from none.
class RateGate {
 public:
  explicit RateGate(const RateLimits& limits);
  RateVerdict Peek(Nanos now) const;
  void Take(Nanos now);  // also if Peek would refuse
  void Release();        // a call that was taken has ended
  uint64_t running() const { return running_; }

 private:
  std::vector<SlidingWindow> windows_;
  uint64_t burst_ = 0;
  uint64_t concurrency_ = 0;
  uint64_t running_ = 0;
};

}  // namespace coffer::policy
