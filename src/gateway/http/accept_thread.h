// SPDX-License-Identifier: Apache-2.0
//
// The thread that accepts connections and answers GET /healthz. It serves nothing else.
//
// An answer from here waits neither for the loop nor for workers, and no limit of connections keeps
// a probe out. It says 200 while the loop turns and 503 when its heartbeat is stale, so an
// orchestrator can tell a busy daemon from a stuck one. Every other connection goes to the loop
// with its bytes unread: as soon as its first bytes differ from "GET /healthz", or after a second
// of silence; the new connections of a tenant, and those of a peer that is not known, at a pace of
// their own (connection_pace.h, known_tenants.h). A request for /healthz that is not plain and
// well-formed goes there too, and the loop says what is wrong with it.
//
// TLS cannot be read here: such a connection goes to the loop at once. A daemon with TLS has a
// listener for probes instead (ServerConfig::health), which is plain and answers nothing but
// /healthz.
//
// Made before privileges are dropped; Start comes after, because a thread keeps what it was born with.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "gateway/http/connection_pace.h"
#include "gateway/http/head_checks.h"
#include "gateway/http/known_tenants.h"
#include "gateway/http/limits.h"
#include "gateway/http/message.h"

namespace coffer::gateway {

struct AcceptListener {
  UniqueFd fd;
  bool tls = false;
  bool health_only = false;
};

// Whether the client has left, and what it asked (if anything) only reads: nothing is lost if it is not served.
bool IsAbandonedReading(int connection);

class AcceptThread {
 public:
  // Gets each connection that is the loop's, on the accepting thread; calls Taken when the loop has it.
  using HandOver = std::function<void(UniqueFd connection, bool tls)>;

  AcceptThread(const HttpLimits& limits, const SiteNames& names, const KnownTenants& known,
               HandOver hand_over);
  ~AcceptThread();
  AcceptThread(const AcceptThread&) = delete;
  AcceptThread& operator=(const AcceptThread&) = delete;

  Status Add(AcceptListener listener);
  void Start();
  // Closes the listeners and what was not handed over. No HandOver runs when it returns.
  void Stop();

  // From the loop's thread: it turns.
  void Beat();
  void Taken() { --in_transit_; }

  struct Counts {
    uint64_t accepted = 0;
    uint64_t refused = 0;    // the loop did not keep up
    uint64_t healthy = 0;    // answers with 200
    uint64_t unhealthy = 0;  // with 503
  };
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    UniqueFd fd;
    bool tls = false;
    bool health_only = false;
    Clock::time_point since;
  };
  using Place = std::list<Waiting>::iterator;

  void Run();
  void Accept(const AcceptListener& listener);
  void Keep(Waiting waiting);
  // The connection has bytes, or ended.
  void Look(Place place);
  // Answers one request of `bytes`; false if that is for the loop.
  bool AnswerHealth(Place place, std::string_view bytes, bool* keep);
  void HandOverOldest();
  // `bytes`: the bytes that the client has sent so far, if they were read.
  void Pass(Place place, std::string_view bytes = {});
  void Enter(Newcomer newcomer);
  void TurnAway(const Newcomer& newcomer, std::string why);
  void Drop(Place place);
  bool LoopTurns(std::chrono::milliseconds* age) const;

  const HttpLimits& limits_;
  const SiteNames& names_;
  const KnownTenants& known_;
  const HandOver hand_over_;
  UniqueFd poll_, stop_;
  UniqueFd spare_;  // given up to accept and refuse when descriptors run out
  std::vector<AcceptListener> listeners_;
  std::list<Waiting> waiting_;  // oldest first
  std::unordered_map<int, Place> by_fd_;
  ConnectionPace pace_;
  std::thread thread_;

  std::atomic<Clock::rep> beat_;
  std::atomic<size_t> in_transit_{0};
  std::atomic<uint64_t> accepted_{0}, refused_{0}, healthy_{0}, unhealthy_{0};
};

}  // namespace coffer::gateway
