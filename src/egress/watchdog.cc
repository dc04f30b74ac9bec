// SPDX-License-Identifier: Apache-2.0
#include "egress/watchdog.h"

#include <algorithm>
#include <utility>

namespace coffer::egress {

Watchdog::Watchdog(const net::IoExecutor& executor, std::function<void()> expired)
    : timer_(executor), expired_(std::move(expired)) {}

void Watchdog::Within(Nanos time) {
  due_ = Clock::now() + time;
  if (!waiting_ || timer_.expiry() > due_) {
    Wait();
  }
}

void Watchdog::Until(Nanos moment) { Within(std::max(moment - BootTime(), Nanos(0))); }

void Watchdog::Wait() {
  waiting_ = true;
  timer_.expires_at(due_);
  timer_.async_wait([this, flag = std::weak_ptr(expired_flag_)](net::error_code error) {
    const std::shared_ptr<bool> alive = flag.lock();
    // It may have been replaced by a shorter one after this was due and before it ran.
    if (error || alive == nullptr || !waiting_ || timer_.expiry() > Clock::now()) {
      return;
    }
    waiting_ = false;
    if (due_ == Clock::time_point::max()) {
      return;
    }
    if (due_ > Clock::now()) {
      Wait();
      return;
    }
    *alive = true;
    expired_();
  });
}

// Also what is due and has not run yet.
void Watchdog::Stop() { due_ = Clock::time_point::max(); }

}  // namespace coffer::egress
