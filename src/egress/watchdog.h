// SPDX-License-Identifier: Apache-2.0
//
// A clock that ends a step of a proxied connection.
//
// Every wait has an end. A peer that sends one byte now and then does not get more time for a head: Within sets a time
// for the whole step, and only the carrying of bodies sets it anew.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "net/asio.h"

namespace coffer::egress {

// Runs `expired` when the time that was set last is over. Dropped with its connection.
class Watchdog {
 public:
  Watchdog(const net::IoExecutor& executor, std::function<void()> expired);
  void Within(Nanos time);
  void Until(Nanos moment);  // of BootTime()
  void Stop();
  bool expired() const { return *expired_flag_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Timer =
      net::asio::basic_waitable_timer<Clock, net::asio::wait_traits<Clock>, net::IoExecutor>;
  void Wait();

  Timer timer_;
  std::function<void()> expired_;
  // Bodies set the time anew with each piece: the timer that runs is left alone, and looks at this when it is over.
  Clock::time_point due_ = Clock::time_point::max();
  bool waiting_ = false;
  std::shared_ptr<bool> expired_flag_ = std::make_shared<bool>(false);
};

}  // namespace coffer::egress
