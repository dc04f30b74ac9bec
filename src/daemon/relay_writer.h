// SPDX-License-Identifier: Apache-2.0
//
// Frames on their way to a relay (calls_inside.h), as fast as it reads them.
//
// The relay may have been broken into. One that reads slower than any relay does is given up, and the frames that wait
// for it are freed. A frame is counted as its tenant's until it was sent, or dropped. Nothing here waits. Lives on the
// gateway's loop.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "net/loop.h"

namespace coffer::daemon {

// In each span of time the relay reads so many bytes, or all there are.
struct RelayPace {
  std::chrono::milliseconds span = std::chrono::seconds(30);
  size_t least = 1 << 20;
};

struct RelayFrame {
  std::string bytes;
  std::shared_ptr<void> room;  // what counts them as the tenant's; may be null
};

class RelayWriter {
 public:
  // `socket` stays open until Drop. `went` is called after the relay took some, and `lost`, once,
  // when it is gone or too slow; neither is called inside Add.
  RelayWriter(net::Loop& loop, int socket, RelayPace pace, std::function<void()> went,
              std::function<void()> lost);

  void Add(RelayFrame frame);
  // Nothing more is sent.
  void Drop();
  size_t pending() const { return pending_; }

 private:
  enum class Sent : uint8_t { kAll, kSome, kGone };
  Sent Send();
  void Continue();
  void Watch();
  void CheckPace();

  net::Loop& loop_;
  const int socket_;
  const RelayPace pace_;
  const std::function<void()> went_;
  const std::function<void()> lost_;
  std::deque<RelayFrame> frames_;
  size_t first_sent_ = 0;  // of the first frame
  size_t pending_ = 0;
  size_t taken_ = 0;  // in this span
  bool dropped_ = false;
  std::shared_ptr<void> writing_, span_;
};

}  // namespace coffer::daemon
