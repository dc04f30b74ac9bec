// SPDX-License-Identifier: Apache-2.0
//
// Notices that a program has closed its side while its server is waited for.
//
// A boundary has a limited number of connections. A program that gave up on a slow server and asks again would soon
// have used all of them, each until the server is given up too. A closed side may also be a program that has said
// all it has to say and waits (shutdown): TCP shows both alike. So there is a time of grace.
#pragma once

#include <chrono>
#include <functional>

#include "egress/watchdog.h"

namespace coffer::egress {

// How long a connection that one side has closed may stand still.
inline constexpr std::chrono::seconds kHalfOpenTime{60};

class PeerWatch {
 public:
  // Runs `gone` once, when `peer` has been closed by the other side for `grace`, and `moved` has
  // not changed for as long. `peer` outlives it.
  PeerWatch(
      const net::IoExecutor& executor, net::Stream& peer, Nanos grace, std::function<void()> gone,
      std::function<uint64_t()> moved = [] { return uint64_t{0}; });
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch() = default;
  bool gone() const { return gone_; }

 private:
  void Look();

  net::Stream& peer_;
  const Nanos grace_;
  const std::function<void()> tell_;
  const std::function<uint64_t()> moved_;  // bytes so far
  uint64_t seen_ = 0;                      // of them, when it was looked last
  bool closed_ = false;
  bool gone_ = false;
  Watchdog next_;
};

}  // namespace coffer::egress
