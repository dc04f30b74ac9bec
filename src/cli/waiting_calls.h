// SPDX-License-Identifier: Apache-2.0
//
// Calls of an MCP client that wait for their turn, the oldest first and a bounded number of them.
// None of them is a call of the record yet.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "gateway/mcp/server.h"

namespace coffer::cli {

class WaitingCalls {
 public:
  bool empty() const { return calls_.empty(); }

  // A call too many is answered with an error.
  void Add(const gateway::McpCall& call, gateway::McpServer& server) {
    if (calls_.size() < kMost) {
      calls_.push_back(call);
    } else {
      server.Answer(call.id, gateway::McpError{gateway::McpErrorCode::kInternal,
                                               "too many calls wait; send it again later",
                                               {}});
    }
  }
  // Not empty.
  gateway::McpCall Take() {
    gateway::McpCall next = std::move(calls_.front());
    calls_.pop_front();
    return next;
  }
  // Answers the call if it waits; `why` says who cancelled it.
  void Cancel(const gateway::McpId& id, const std::string& why, gateway::McpServer& server) {
    const auto waits = std::find_if(calls_.begin(), calls_.end(),
                                    [&](const gateway::McpCall& call) { return call.id == id; });
    if (waits != calls_.end()) {
      const gateway::McpId waiting = waits->id;  // `id` may be the call's own
      calls_.erase(waits);
      server.Answer(waiting, gateway::McpError{gateway::McpErrorCode::kInternal,
                                               "the call was cancelled before it began" + why,
                                               {}});
    }
  }
  void CancelAll(const std::string& why, gateway::McpServer& server) {
    while (!calls_.empty()) {
      Cancel(calls_.back().id, why, server);
    }
  }

 private:
  static constexpr size_t kMost = 256;
  std::deque<gateway::McpCall> calls_;
};

}  // namespace coffer::cli
