// SPDX-License-Identifier: Apache-2.0
//
// One side of a proxied connection: a Stream with a bounded buffer in front, its bytes counted, and a clock that ends it.
//
// Every wait has an end. A peer that sends one byte now and then does not get more time for a head: Within sets a time
// for the whole step, and only the carrying of bodies sets it anew.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "egress/rule_meter.h"
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
  void Start(std::chrono::nanoseconds time);
  using Clock = std::chrono::steady_clock;
  using Timer =
      net::asio::basic_waitable_timer<Clock, net::asio::wait_traits<Clock>, net::IoExecutor>;
  Timer timer_;
  std::function<void()> expired_;
  std::shared_ptr<bool> expired_flag_ = std::make_shared<bool>(false);
};

class BufferedStream {
 public:
  explicit BufferedStream(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)) {}
  // From here on its bytes are charged to `budget`, which outlives it: what goes beyond does not pass, and ends it.
  void Charge(ByteBudget& budget) { budget_ = &budget; }

  // What was read and not used. At most kMostBuffered bytes are read ahead.
  std::string& buffer() { return buffer_; }
  static constexpr size_t kMostBuffered = 64UL * 1024;
  std::string Take(size_t size);  // the first bytes of it

  // Reads some more into the buffer; false at the end, or if it is full.
  net::Task<bool> Fill();
  // Up to and with the first empty line. Nothing if the stream ended before, or it is longer than `most`.
  net::Task<std::optional<std::string>> ReadHead(size_t most);
  net::Task<bool> Write(std::string_view data);

  net::Stream& stream() { return *stream_; }
  // Another protocol on the same bytes (TLS): the buffer must have been taken.
  std::unique_ptr<net::Stream> TakeStream() { return std::move(stream_); }
  uint64_t received() const { return received_; }
  uint64_t sent() const { return sent_; }

 private:
  std::unique_ptr<net::Stream> stream_;
  ByteBudget* budget_ = nullptr;
  std::string buffer_;
  uint64_t received_ = 0;
  uint64_t sent_ = 0;
  bool ended_ =
      false;  // it was read to its end: a socket tells that once, and who reads again waits
};

// Carries bytes both ways until both ends have ended, or none has moved for `idle`; for kHalfOpenTime if one end has. What
// is in the buffers goes first.
net::Task<void> CarryBothWays(BufferedStream& a, BufferedStream& b, Watchdog& watchdog,
                              std::chrono::seconds idle);

}  // namespace coffer::egress
