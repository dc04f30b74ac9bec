// SPDX-License-Identifier: Apache-2.0
//
// The interface behind the server of a socket inside a boundary (inside_server.h). It makes the calls itself
// (inside_calls.h), or forwards them to the gateway (relay_calls.h).
#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "gateway/mcp/server.h"

namespace coffer::cli {

// Who made a call and gets its answer. Outlives its calls.
class InsideCaller {
 public:
  virtual ~InsideCaller() = default;
  virtual gateway::McpServer& mcp() = 0;
  virtual uint64_t number() const = 0;  // no other caller of this run has it
  // False: it does not read what it got, so nothing more is made for it.
  virtual bool takes_more() const = 0;
};

// Not thread-safe; the owner polls.
class InsideWork {
 public:
  virtual ~InsideWork() = default;

  virtual const Json& Tools() const = 0;  // the answer of tools/list
  virtual void Begin(InsideCaller& caller, const gateway::McpCall& call) = 0;
  virtual void Cancel(const InsideCaller& caller, const gateway::McpId& id) = 0;
  virtual void CancelAllOf(const InsideCaller& caller) = 0;
  // Nothing new begins, and what runs ends.
  virtual void CancelAll() = 0;
  virtual bool HasAny(const InsideCaller& caller) const = 0;
  virtual bool idle() const = 0;

  virtual void AddTo(std::vector<pollfd>* polled) const = 0;
  virtual void Handle(const std::vector<pollfd>& polled) = 0;
};

}  // namespace coffer::cli
