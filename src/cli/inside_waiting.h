// SPDX-License-Identifier: Apache-2.0
//
// Requests of hostile code inside a boundary that wait for their turn: at most kMostInnerWaiting,
// the oldest first. One whose client does not read what it was sent is passed over. A request that
// does not become a call is answered here.
#pragma once

#include <deque>
#include <utility>

#include "cli/inside_work.h"
#include "gateway/mcp/server.h"

namespace coffer::cli {

class InsideWaiting {
 public:
  struct Waiting {
    InsideCaller* caller;
    gateway::McpCall call;
  };

  // What is not the name of a tool, or finds no place, is answered; the return says whether it waits.
  bool Add(InsideCaller& caller, const gateway::McpCall& call);
  // The next whose client reads, or null. It stays until Take.
  const Waiting* Next() const;
  // Takes what Next has found.
  Waiting Take();
  std::deque<Waiting> TakeAll() { return std::exchange(waiting_, {}); }

  // Answers the request.
  void Cancel(const InsideCaller& caller, const gateway::McpId& id);
  // Without answers: the client is gone.
  void CancelAllOf(const InsideCaller& caller);
  void Clear() { waiting_.clear(); }
  bool HasAny(const InsideCaller& caller) const;
  bool empty() const { return waiting_.empty(); }

 private:
  std::deque<Waiting> waiting_;
};

}  // namespace coffer::cli
