// SPDX-License-Identifier: Apache-2.0
//
// The calls that clients of MCP's legacy era have under way, so that one request can cancel the call of another.
//
// A flight lives from Submit to the end of its call, also when its client's connection is gone: in that era a lost
// connection does not cancel. Used on the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "gateway/service.h"

namespace coffer::gateway {

class McpFlight : public std::enable_shared_from_this<McpFlight> {
 public:
  // `kill` cancels a call that runs, by its id.
  explicit McpFlight(std::function<void(const std::string& call_id)> kill);

  // For CallRequest::watch.
  std::shared_ptr<CallWatch> MakeWatch();
  // Kills the call, now or as soon as it runs. One that waits never begins.
  void Cancel();
  // Its answer is there: its id may be used again, although the service may still hold the reply for a moment.
  void End() { ended_ = true; }
  bool ended() const { return ended_; }
  // Told once, by the first Cancel.
  void SetCancelled(std::function<void()> told) { told_ = std::move(told); }

 private:
  const std::function<void(const std::string& call_id)> kill_;
  const std::shared_ptr<CallWatch> watch_ = std::make_shared<CallWatch>();
  std::function<void()> told_;
  std::string call_id_;  // "" until it runs
  bool ended_ = false;
};

class McpFlights {
 public:
  // False: a request of this session with this id is under way.
  bool Add(const std::string& session_id, const std::string& request_id,
           const std::shared_ptr<McpFlight>& flight);
  std::shared_ptr<McpFlight> Find(const std::string& session_id,
                                  const std::string& request_id) const;

 private:
  std::map<std::pair<std::string, std::string>, std::weak_ptr<McpFlight>> flights_;
  size_t sweep_at_ = 64;  // entries of calls that have ended are removed
};

}  // namespace coffer::gateway
