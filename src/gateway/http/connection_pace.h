// SPDX-License-Identifier: Apache-2.0
//
// How fast new connections of one peer reach the loop: a burst at once, the rest at a steady rate.
// A peer here is a known tenant, wherever its clients are, or all others at an address
// (known_tenants.h).
//
// A connection costs the loop a tenth of a millisecond before its tenant is known, so that cost counts in no tenant's
// turn. A peer that opens thousands a second would take all of the loop, and a core. Here such a peer delays only its
// own connections: its connections are held, oldest first, and a held connection whose client leaves costs nothing
// more. A client that keeps its connection open never notices. Not thread-safe: the accepting thread owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"

namespace coffer::gateway {

struct Newcomer {
  UniqueFd fd;
  bool tls = false;
};

struct PaceLimits {
  double per_second = 100;
  double burst = 256;
  size_t held = 256;    // of one peer
  size_t peers = 4096;  // remembered at once
};

class ConnectionPace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Verdict : uint8_t { kNow, kHeld, kTooMany };

  explicit ConnectionPace(PaceLimits limits) : limits_(limits) {}

  // kNow: go on with the newcomer, which has used up one of its peer's turns. kHeld: it was taken
  // and comes back from Due. kTooMany: refuse it.
  Verdict Take(const std::string& peer, Newcomer* newcomer, Time now);

  // Those whose time has come. Those that `left` is true for are closed and use up nothing.
  std::vector<Newcomer> Due(Time now, const std::function<bool(const Newcomer&)>& left);

  bool holds_any() const { return held_ > 0; }
  // Closes what is held.
  void Clear() {
    peers_.clear();
    held_ = 0;
  }

 private:
  struct Peer {
    double turns = 0;
    Time counted;
    std::deque<Newcomer> held;
  };
  void Count(Peer& peer, Time now) const;
  void ForgetIdle(Time now);

  const PaceLimits limits_;
  std::unordered_map<std::string, Peer> peers_;
  size_t held_ = 0;
};

}  // namespace coffer::gateway
