// SPDX-License-Identifier: Apache-2.0
//
// The thread that accepts connections and answers GET /healthz. It serves nothing else.
//
// An answer from here waits neither for the loop nor for workers, and no limit of connections keeps
// a probe out. It says 200 while the loop turns and 503 when its heartbeat is stale or the loop has
// not turned yet, so an orchestrator can tell a busy daemon from a stuck one. A connection that was
// answered stays here for the next probe. Every other connection goes to the door of the loop
// (connection_door.h) with its bytes unread: as soon as its first bytes differ from "GET /healthz",
// or after a second of silence. A request for /healthz that is not plain and well-formed goes there
// too, and the loop says what is wrong with it.
//
// A probe waits behind the connections that came before it, at most a backlog of them (listen.cc).
// So the thread does no more for one than accept it, look at its first bytes and pass it on.
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
#include <list>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "gateway/http/connection_door.h"
#include "gateway/http/head_checks.h"
#include "gateway/http/limits.h"
#include "gateway/http/message.h"

namespace coffer::gateway {

struct AcceptListener {
  UniqueFd fd;
  bool tls = false;
  bool health_only = false;
};

class AcceptThread {
 public:
  // `door` gets each connection that is the loop's, on the accepting thread.
  AcceptThread(const HttpLimits& limits, const SiteNames& names, ConnectionDoor& door);
  ~AcceptThread();
  AcceptThread(const AcceptThread&) = delete;
  AcceptThread& operator=(const AcceptThread&) = delete;

  Status Add(AcceptListener listener);
  // Once. The loop need not turn yet: its connections wait for it. The thread has the priority of the caller.
  void Start();
  // Closes the listeners and the connections not handed over.
  void Stop();

  // From the loop's thread: it turns.
  void Beat();

  struct Counts {
    uint64_t accepted = 0;
    uint64_t refused = 0;    // for want of descriptors
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
    bool watched = false;   // by poll_
    bool answered = false;  // is in probes_
  };
  using Connections = std::list<Waiting>;
  using Place = Connections::iterator;

  void Run();
  void Accept(const AcceptListener& listener);
  void Keep(Waiting waiting);
  // The connection has bytes, or ended.
  void Look(Place place);
  void WaitForMore(Place place);
  void LookAgain(Place place);
  // Answers one request of `bytes`; false if that is for the loop.
  bool AnswerHealth(Place place, std::string_view bytes, bool* keep);
  void EndPatience();
  enum class Said : uint8_t { kNothing, kSomething };
  void Pass(Place place, Said said);
  void Drop(Place place);
  Connections& ListOf(Place place) { return place->answered ? probes_ : waiting_; }
  Response Health(bool* turns) const;

  const HttpLimits& limits_;
  const SiteNames& names_;
  ConnectionDoor& door_;
  UniqueFd poll_, stop_;
  UniqueFd spare_;  // given up to accept and refuse when descriptors run out
  std::vector<AcceptListener> listeners_;
  Connections waiting_;  // for their first bytes; oldest first
  Connections probes_;   // answered, and may ask again; oldest first
  std::unordered_map<int, Place> by_fd_;
  std::thread thread_;

  std::atomic<Clock::rep> beat_;
  std::atomic<bool> turned_{false};  // the loop has turned once
  std::atomic<uint64_t> accepted_{0}, refused_{0}, healthy_{0}, unhealthy_{0};
};

}  // namespace coffer::gateway
