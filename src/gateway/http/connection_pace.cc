// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/connection_pace.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace coffer::gateway {

// The turns that have come since the last count.
void ConnectionPace::Count(Peer& peer, Time now) const {
  const double seconds = std::chrono::duration<double>(now - peer.counted).count();
  peer.turns = std::min(limits_.burst, peer.turns + std::max(0.0, seconds) * limits_.per_second);
  peer.counted = now;
}

ConnectionPace::Verdict ConnectionPace::Take(const std::string& name, Newcomer* newcomer,
                                             Time now) {
  if (peers_.size() >= limits_.peers && !peers_.contains(name)) {
    ForgetIdle(now);
    if (peers_.size() >= limits_.peers) {
      return Verdict::
          kNow;  // so many peers are no single one's doing; their sum has a bound of its own
    }
  }
  Peer& peer = peers_.try_emplace(name, Peer{limits_.burst, now, {}}).first->second;
  Count(peer, now);
  if (peer.held.empty() && peer.turns >= 1) {
    peer.turns -= 1;
    return Verdict::kNow;
  }
  if (peer.held.size() >= limits_.held) {
    return Verdict::kTooMany;
  }
  peer.held.push_back(std::move(*newcomer));
  ++held_;
  return Verdict::kHeld;
}

std::vector<Newcomer> ConnectionPace::Due(Time now,
                                          const std::function<bool(const Newcomer&)>& left) {
  std::vector<Newcomer> due;
  for (auto& [name, peer] : peers_) {
    Count(peer, now);
    while (!peer.held.empty()) {
      const bool gone = left(peer.held.front());
      if (!gone && peer.turns < 1) {
        break;
      }
      if (!gone) {
        peer.turns -= 1;
        due.push_back(std::move(peer.held.front()));
      }
      peer.held.pop_front();
      --held_;
    }
  }
  return due;
}

// A peer with all its turns is as good as one that never came.
void ConnectionPace::ForgetIdle(Time now) {
  for (auto at = peers_.begin(); at != peers_.end();) {
    Count(at->second, now);
    const bool at_rest = at->second.held.empty() && at->second.turns >= limits_.burst;
    at = at_rest ? peers_.erase(at) : std::next(at);
  }
}

}  // namespace coffer::gateway
