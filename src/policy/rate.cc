// SPDX-License-Identifier: Apache-2.0
#include "policy/rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace coffer::policy {
namespace {

struct Unit {
  std::string_view name;
  std::chrono::seconds length;
};

constexpr Unit kUnits[] = {
    {"s", std::chrono::seconds(1)},
    {"m", std::chrono::seconds(60)},
    {"h", std::chrono::seconds(3600)},
    {"d", std::chrono::seconds(86400)},
};

constexpr uint64_t kMostRateCalls = 1000000;

}  // namespace

Result<RateRule> ParseRate(std::string_view text) {
  uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, count);
  if (problem == std::errc() && count >= 1 && count <= kMostRateCalls && rest != end &&
      *rest == '/') {
    const std::string_view unit(rest + 1, static_cast<size_t>(end - rest - 1));
    for (const Unit& known : kUnits) {
      if (known.name == unit) {
        return RateRule{count, known.length};
      }
    }
  }
  return Refused("policy.value", fmt::format("\"{}\" is not a rate", Printable(text)),
                 "write a whole number and a unit, such as 10/s, 100/m, 1000/h or 5000/d");
}

std::string FormatRate(const RateRule& rule) {
  for (const Unit& known : kUnits) {
    if (Nanos(known.length) == rule.window) {
      return fmt::format("{}/{}", rule.count, known.name);
    }
  }
  return fmt::format("{}/{}ns", rule.count, rule.window.count());
}

// Rounded up: sixty slices are never shorter than the window.
int64_t SlidingWindow::SliceLength() const {
  return std::max<int64_t>((rule_.window.count() + kSlices - 1) / kSlices, 1);
}

int64_t SlidingWindow::SliceOf(Nanos now) const {
  return std::max(now.count() / SliceLength(), newest_);
}

uint64_t SlidingWindow::UsedAt(Nanos now) const {
  const int64_t current = SliceOf(now);
  uint64_t used = 0;
  // What is older than the window may still be in the ring, if no call was counted since.
  for (int64_t slice = std::max<int64_t>(current - kSlices, 0); slice <= newest_; ++slice) {
    used += taken_[static_cast<size_t>(slice % (kSlices + 1))];
  }
  return used;
}

Nanos SlidingWindow::WaitAt(Nanos now) const {
  if (UsedAt(now) < rule_.count) {
    return Nanos(0);
  }
  const int64_t current = SliceOf(now);
  uint64_t used = UsedAt(now);
  for (int64_t slice = std::max<int64_t>(current - kSlices, 0); slice <= newest_; ++slice) {
    used -= std::min(used, taken_[static_cast<size_t>(slice % (kSlices + 1))]);
    if (used < rule_.count) {
      // This slice leaves the window when the one kSlices + 1 later begins.
      const Nanos free_at((slice + kSlices + 1) * SliceLength());
      return std::max(free_at - now, Nanos(1));
    }
  }
  return rule_.window;
}

void SlidingWindow::Take(Nanos now) {
  const int64_t current = SliceOf(now);
  for (int64_t slice = std::max(newest_ + 1, current - kSlices); slice <= current; ++slice) {
    taken_[static_cast<size_t>(slice % (kSlices + 1))] = 0;
  }
  newest_ = current;
  ++taken_[static_cast<size_t>(current % (kSlices + 1))];
}

RateGate::RateGate(const RateLimits& limits)
    : burst_(limits.burst), concurrency_(limits.concurrency) {
  for (const RateRule& rule : limits.calls) {
    windows_.emplace_back(rule);
  }
  if (burst_ > 0) {
    windows_.emplace_back(RateRule{burst_, std::chrono::seconds(1)});
  }
}

RateVerdict RateGate::Peek(Nanos now) const {
  RateVerdict verdict;
  for (size_t i = 0; i < windows_.size(); ++i) {
    const Nanos wait = windows_[i].WaitAt(now);
    if (wait > Nanos(0) && wait > verdict.retry_after) {
      const bool is_burst = burst_ > 0 && i + 1 == windows_.size();
      verdict = {false, wait,
                 is_burst ? fmt::format("burst of {}", burst_) : FormatRate(windows_[i].rule())};
    }
  }
  if (verdict.allowed && concurrency_ > 0 && running_ >= concurrency_) {
    verdict = {false, Nanos(0), fmt::format("{} at a time", concurrency_)};
  }
  return verdict;
}

void RateGate::Take(Nanos now) {
  for (SlidingWindow& window : windows_) {
    window.Take(now);
  }
  ++running_;
}

void RateGate::Release() { running_ -= running_ > 0 ? 1 : 0; }

}  // namespace coffer::policy
