// SPDX-License-Identifier: Apache-2.0
#include "egress/peer_watch.h"

#include <algorithm>

namespace coffer::egress {
namespace {

constexpr Nanos kLookTime = std::chrono::seconds(5);

}  // namespace

PeerWatch::PeerWatch(const net::IoExecutor& executor, net::Stream& peer, Nanos grace,
                     std::function<void()> gone, std::function<uint64_t()> moved)
    : peer_(peer),
      grace_(grace),
      tell_(std::move(gone)),
      moved_(std::move(moved)),
      next_(executor, [this] { Look(); }) {
  next_.Within(std::min(kLookTime, grace_));
}

void PeerWatch::Look() {
  const uint64_t before = std::exchange(seen_, moved_());
  if (closed_ && before == seen_) {
    gone_ = true;
    tell_();
    return;
  }
  closed_ = closed_ || peer_.PeerGone();
  next_.Within(closed_ ? grace_ : std::min(kLookTime, grace_));
}

}  // namespace coffer::egress
