// SPDX-License-Identifier: Apache-2.0
//
// The calls that the program of one call makes (its manifest's [calls]), in the gateway: what its
// relay asks for becomes calls with that one as their parent.
//
// Whose calls they are follows from the socket, never from a frame: tenant, agent, user, session
// and parent are those of the call that was launched with it. They share its budgets
// (policy/call_budget.h): a call that does not fit beside those that run waits, the oldest first.
// Nothing here waits for the relay: one that sends more than a relay does, or reads less, is read
// later, and one that reads too slowly is cut off (relay_writer.h). What it sends and is sent
// counts as its tenant's bytes (fair_queue.h). When the relay is gone, or the outer call has ended,
// the calls end. Lives on the gateway's loop.
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
#include "daemon/relay_writer.h"
#include "net/loop.h"
#include "policy/call_budget.h"

namespace coffer::daemon {

// A call on its way up the ladder.
struct InnerCall {
  uint64_t number = 0;
  std::shared_ptr<call::ToolRequest> request;
  std::shared_ptr<std::atomic<bool>> unwanted;  // it need not begin any more
  std::shared_ptr<void> room;                   // of its arguments, if they are long
};

// How calls are run.
struct InnerWays {
  // Ended is called for it, once; false: there is no place for it, and it is not.
  std::function<bool(InnerCall)> begin;
  std::function<void(const std::string& call_id)> stop;  // once for each
  // Counts bytes as the outer call's key's until the handle is dropped. Null: it has its share.
  std::function<std::shared_ptr<void>(size_t bytes)> hold;
  std::function<void()> idle;  // the outer call has ended before, and its last call now
};

// What a relay of this build does not exceed; and from when on it is not read.
struct RelayBounds {
  size_t frames = 1200;             // in a second; it reads at most 500 messages in one
  size_t bytes = size_t{16} << 20;  // in a second; it reads at most 8 MiB
  size_t unread = size_t{1} << 20;  // that it was sent and has not read
  RelayPace pace;
};

class CallsInside {
 public:
  // `relay` is the socket to it, and `tools` the answer of tools/list. `outer` is the call whose
  // program calls; `shelf` outlives this.
  CallsInside(net::Loop& loop, const call::ToolShelf& shelf, const call::ReadyCall& outer,
              UniqueFd relay, std::string tools, InnerWays ways, RelayBounds bounds = {});

  // It was launched, with these limits.
  void Runs(uint64_t number, const std::string& call_id, const policy::Limits& granted);
  // `reply`: EncodeInsideReplyFrame, because making it takes time.
  void Ended(uint64_t number, RelayFrame reply, Nanos cpu_used);
  // The outer call has ended: nothing begins, and what runs ends. True if nothing is left.
  bool End();

 private:
  struct Running {
    std::shared_ptr<const policy::Tool> tool;  // null: there is none that may be called
    std::shared_ptr<std::atomic<bool>> unwanted;
    std::string call_id;  // once it runs
  };
  struct Waiting {
    call::InsideFrame frame;
    std::shared_ptr<void> room;
  };
  void Watch();
  void Rest();
  bool HasRoom();
  void Read();
  void Take(Waiting taken);
  void Begin(Waiting taken);
  void BeginWaiting();
  void Start(Waiting taken);
  std::shared_ptr<call::ToolRequest> RequestOf(const call::InsideFrame& frame) const;
  void Cancel(uint64_t number);
  void Refuse(uint64_t number, const std::string& why);
  void Send(const call::InsideFrame& frame);
  void Close();
  void CloseIfIdle();

  net::Loop& loop_;
  const call::ToolShelf& shelf_;
  const call::ToolRequest outer_;  // without arguments
  const policy::Envelope envelope_;
  const std::vector<std::string> tools_;
  const uint64_t most_calls_;
  const InnerWays ways_;
  const RelayBounds bounds_;
  policy::CallBudget budget_;
  UniqueFd relay_;  // none: all is over
  call::InsideFrameReader in_{call::InsidePeer::kRelay};
  std::shared_ptr<void> in_room_;  // of a long frame that is not whole
  RelayWriter out_;
  std::deque<Waiting> waiting_;
  std::map<uint64_t, Running> running_;  // by number
  uint64_t last_ = 0;
  bool closed_ = false;            // nothing begins any more
  bool ended_ = false;             // the outer call has
  Nanos second_{0};                // the one that is counted
  size_t frames_ = 0;              // in it
  size_t bytes_ = 0;               // in it
  std::shared_ptr<void> reading_;  // null: not before it has read
};

}  // namespace coffer::daemon
