// SPDX-License-Identifier: Apache-2.0
//
// Where accepted connections wait for the loop, and the thread that lets them in.
//
// The thread reads who asks (known_tenants.h), holds the new connections of a tenant, and those of a peer that is not
// known, to a pace (connection_pace.h), and turns away with 503 what is too much. That work takes longer than accepting,
// and a flood makes all of it. So it is done here, and the accepting thread, which answers probes, only adds
// to a queue of bounded size, without a lock. While the queue is full, connections stay in the kernel's backlog.
//
// Nothing is read from a connection here: its bytes are looked at and stay for the loop.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "gateway/http/connection_pace.h"
#include "gateway/http/known_tenants.h"
#include "gateway/http/limits.h"

namespace coffer::gateway {

// Whether the client has left, and what it asked (if anything) only reads: nothing is lost if it is not served.
bool IsAbandonedReading(int connection);

// Answers 503 with Retry-After, as far as the client takes it at once.
void AnswerBusy(int connection, std::string why);

class ConnectionDoor {
 public:
  // Gets each connection that is the loop's, on the thread of this door; calls Taken when the loop has it.
  using HandOver = std::function<void(UniqueFd connection, bool tls)>;

  ConnectionDoor(const HttpLimits& limits, const KnownTenants& known, HandOver hand_over);
  ~ConnectionDoor();
  ConnectionDoor(const ConnectionDoor&) = delete;
  ConnectionDoor& operator=(const ConnectionDoor&) = delete;

  // Once. What arrives before waits.
  void Start();
  // After the last Arrive. Closes what has not been let in. No HandOver runs when it returns.
  void Stop();

  // From one thread, the accepting one.
  void Arrive(Newcomer newcomer);
  // Whether that thread should accept no more for now: what waits in the kernel's backlog is not lost, and all clients
  // wait there alike.
  bool full() const { return arrived_ - taken_ >= kSlots - kSpareSlots; }
  // From the loop's thread.
  void Taken() { --in_transit_; }

  uint64_t refused() const { return refused_; }  // closed or turned away

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    int fd = -1;
    bool tls = false;
  };
  static constexpr size_t kSlots = 2048;
  static constexpr size_t kSpareSlots = 640;  // for what the accepting thread has accepted already

  void Run();
  bool Take(Newcomer* newcomer);
  void LetIn(Newcomer newcomer);
  void Enter(Newcomer newcomer);
  void TurnAway(const Newcomer& newcomer, std::string why);

  const HttpLimits& limits_;
  const KnownTenants& known_;
  const HandOver hand_over_;
  ConnectionPace pace_;
  UniqueFd wake_;
  // A ring: the accepting thread writes slots and `arrived_`, the door's reads them and writes `taken_`.
  std::array<Slot, kSlots> slots_;
  std::atomic<size_t> arrived_{0}, taken_{0};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
  std::atomic<size_t> in_transit_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace coffer::gateway
