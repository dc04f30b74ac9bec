// SPDX-License-Identifier: Apache-2.0
//
// The calls that the program of one call makes (its manifest's [calls]), in the gateway: what its relay asks for becomes calls with
// that one as their parent.
//
// Whose calls they are follows from the socket, never from a frame: tenant, agent, user, session and parent are those of the call
// that was launched with it. They share its budgets (policy/call_budget.h): a call that does not fit beside those that run waits,
// the oldest first. Nothing here waits for the relay: one that sends more than a relay does is read later, one that does not read
// is cut off. When the relay is gone, or the outer call has ended, the calls end. Lives on the gateway's loop.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "call/inside_frames.h"
#include "call/ladder.h"
#include "call/tool_shelf.h"
#include "net/loop.h"
#include "policy/call_budget.h"

namespace coffer::daemon {

// A call on its way up the ladder.
struct InnerCall {
  uint64_t number = 0;
  std::shared_ptr<call::ToolRequest> request;
  std::shared_ptr<std::atomic<bool>> unwanted;  // it need not begin any more
};

// How calls are run.
struct InnerWays {
  // Ended is called for it, once; false: there is no place for it, and it is not.
  std::function<bool(InnerCall)> begin;
  std::function<void(const std::string& call_id)> stop;
  std::function<void()> idle;  // the outer call has ended before, and its last call now
};

class CallsInside {
 public:
  // `relay` is the socket to it, and `tools` the answer of tools/list. `outer` is the call whose program calls; `shelf` outlives this.
  CallsInside(net::Loop& loop, const call::ToolShelf& shelf, const call::ReadyCall& outer,
              UniqueFd relay, std::string tools, InnerWays ways);

  // It was launched, with these limits.
  void Runs(uint64_t number, const std::string& call_id, const policy::Limits& granted);
  void Ended(uint64_t number, const call::ToolReply& reply, Nanos cpu_used);
  // The outer call has ended: nothing begins, and what runs ends. True if nothing is left.
  bool End();

 private:
  struct Running {
    std::shared_ptr<const policy::Tool> tool;  // null: there is none that may be called
    std::shared_ptr<std::atomic<bool>> unwanted;
    std::string call_id;  // once it runs
  };
  void Watch();
  void Read();
  void Take(call::InsideFrame frame);
  void Begin(call::InsideFrame frame);
  void BeginWaiting();
  void Start(const call::InsideFrame& frame);
  std::shared_ptr<call::ToolRequest> RequestOf(const call::InsideFrame& frame) const;
  void Cancel(uint64_t number);
  void Refuse(uint64_t number, const std::string& why);
  void Send(const call::InsideFrame& frame);
  void Write();
  void Close();
  void CloseIfIdle();

  net::Loop& loop_;
  const call::ToolShelf& shelf_;
  const call::ToolRequest outer_;  // without arguments
  const policy::Envelope envelope_;
  const std::vector<std::string> tools_;
  const uint64_t most_calls_;
  const InnerWays ways_;
  policy::CallBudget budget_;
  UniqueFd relay_;  // none: all is over
  call::InsideFrameReader in_{call::InsidePeer::kRelay};
  std::string out_;
  Nanos wrote_{0};  // when the relay last took some of it
  std::deque<call::InsideFrame> waiting_;
  std::map<uint64_t, Running> running_;  // by number
  uint64_t last_ = 0;
  bool closed_ = false;  // nothing begins any more
  bool ended_ = false;   // the outer call has
  Nanos second_{0};      // the one that is counted
  size_t frames_ = 0;    // in it
  std::shared_ptr<void> reading_, writing_;
};

}  // namespace coffer::daemon
