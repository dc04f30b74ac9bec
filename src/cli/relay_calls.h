// SPDX-License-Identifier: Apache-2.0
//
// The calls of a tool with [calls] in the daemon, in its relay: each request becomes a frame to the gateway
// (call/inside_frames.h), and what comes back for it becomes an answer.
//
// The relay decides nothing. Names, budgets and limits are the gateway's to judge. Here requests
// wait whose client does not read, and while as many are under way as run at the same time. Not
// thread-safe; the owner polls.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "call/inside_frames.h"
#include "cli/inside_waiting.h"
#include "cli/inside_work.h"

namespace coffer::cli {

class RelayCalls : public InsideWork {
 public:
  explicit RelayCalls(UniqueFd gateway);
  ~RelayCalls() override;

  // Waits until the gateway has said which tools there are. False: it, or the supervisor at `control`, is gone.
  bool AwaitTools(int control);

  const Json& Tools() const override { return *tools_; }
  void Begin(InsideCaller& caller, const gateway::McpCall& call) override;
  void Cancel(const InsideCaller& caller, const gateway::McpId& id) override;
  void CancelAllOf(const InsideCaller& caller) override;
  void CancelAll() override;
  bool HasAny(const InsideCaller& caller) const override;
  // False while the gateway still ends calls; the relay waits some seconds for that.
  bool idle() const override;

  void AddTo(std::vector<pollfd>* polled) const override;
  void Handle(const std::vector<pollfd>& polled) override;

 private:
  struct Asked {
    InsideCaller* caller;
    gateway::McpId id;
  };
  void Ask();
  void Send(const call::InsideFrame& frame);
  void Write();
  void Read();
  void Take(const call::InsideFrame& frame);
  void Lose();

  UniqueFd gateway_;  // none: it is gone
  call::InsideFrameReader in_{call::InsidePeer::kGateway};
  std::string out_;
  std::unique_ptr<const Json> tools_;
  InsideWaiting waiting_;
  std::map<uint64_t, Asked> asked_;  // by number
  uint64_t next_ = 0;
  std::optional<Nanos> ending_since_;
};

}  // namespace coffer::cli
