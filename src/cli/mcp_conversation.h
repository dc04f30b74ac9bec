// SPDX-License-Identifier: Apache-2.0
//
// A conversation with an MCP client on stdin and stdout, until the client has left and everything
// that it asked for has ended.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "gateway/mcp/server.h"

namespace coffer::cli {

// Runs the client's calls beside the conversation, which polls for it.
class McpWork : public gateway::McpHost {
 public:
  // What to poll for; then, for the same list, what came of it. Answers calls that have ended.
  virtual void AddTo(std::vector<pollfd>* polled) const = 0;
  virtual void Handle(const std::vector<pollfd>& polled) = 0;
  // No call waits or runs.
  virtual bool idle() const = 0;
  virtual void CancelAll(const std::string& reason) = 0;
  // Called now and then, when everything is answered and nothing more has been asked for: the moment for upkeep.
  virtual void Rest() = 0;
};

// The signals that end a program, as a descriptor: as signals of ours they would leave calls
// without receipts and the session without an end.
UniqueFd CatchEndingSignals();

// Returns when the client has left, or a signal came. `signals` is from CatchEndingSignals.
void Converse(McpWork& work, int signals);

}  // namespace coffer::cli
