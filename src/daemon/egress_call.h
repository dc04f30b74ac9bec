// SPDX-License-Identifier: Apache-2.0
//
// What an egress process does for one call: it reads the grants, makes a proxy that knows nothing
// but them, says that it is ready, serves the listeners that the supervisor sends, writes down what
// happened, and ends the proxy when the supervisor's end of the call's socket is closed. The
// supervisor's side is call/run/egress_process.h.
//
// Without a daemon the process is `cofferd egress-call`, for one call, started by
// `coffer run --allow` and `coffer call` (ADR 38). In the daemon it is the role of
// call_egress_role.h, for all calls; there each has a ServedCall of its own, and two of them share
// the trusted certificates of this host and nothing else.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "egress/ca_stock.h"
#include "egress/proxy.h"
#include "egress/upstream_trust.h"
#include "egress/watched_stock.h"
#include "net/loop.h"
#include "policy/egress_grants.h"

namespace coffer::daemon {

class ServedCall {
 public:
  // Of the supervisor: the call's socket, and the memory file that takes the log.
  ServedCall(net::Loop& loop, UniqueFd control, UniqueFd log);
  ServedCall(const ServedCall&) = delete;
  ServedCall& operator=(const ServedCall&) = delete;
  ~ServedCall();

  // Makes the proxy that the order in the memory file `order` describes.
  Status Open(int order, egress::UpstreamTrust& trust, egress::CaStock& authorities,
              egress::WatchedStock& watched);
  // Says that it is ready and serves from here on. `ended` runs on the loop when everything is written down and said.
  Status Serve(std::function<void()> ended);
  // Instead of Serve: says why not.
  void Refuse(const Error& error);
  // It has ended, and nothing of it runs any more: it may be dropped. Something may wait for a
  // resolver for some seconds.
  bool over() const;
  bool ended() const { return said_end_; }

 private:
  class LogWriter;
  void Hear();
  Status Say(std::string_view message);

  net::Loop& loop_;
  const UniqueFd control_;
  const std::unique_ptr<LogWriter> log_;
  policy::ParsedGrants grants_;
  std::unique_ptr<egress::Proxy> proxy_;
  std::shared_ptr<void> watch_;
  std::function<void()> ended_;
  bool said_end_ = false;
};

// Resolving names works from here on without files and libraries that were not loaded before.
void LoadResolver();

// The first word of the command line that means the process of one call.
inline constexpr const char* kEgressCallWord = "egress-call";
// The exit status. Gives up every file, capability and group, as root its uid too, and every system
// call that a proxy has no use for (role.h), before it says that it is ready.
int RunEgressCall();

}  // namespace coffer::daemon
