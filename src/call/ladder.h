// SPDX-License-Identifier: Apache-2.0
//
// The ladder of a declared tool, in two halves around the boundary:
//
//   Climb     evaluate, admit, [scan, gate], record: a call that may be launched, or an answer
//   Descend   [inspect], settle, seal: what came back becomes an answer and a receipt
//
// Between the two the caller launches the boundary (call/warden/launcher.h) and collects what it prints; `coffer call` does so
// in one go, the gateway beside everything else. Parameters are checked before anything is taken from rates and budgets. Rungs in brackets have no surface yet: a manifest that asks for one
// does not load. Once a call is admitted it ends in the store, whatever happens here; what the store and the log cannot
// write does not run. Every request that is not a repetition has a receipt (call/recorder.h). Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "call/evaluate.h"
#include "call/host_budget.h"
#include "call/recorder.h"
#include "call/run/run_request.h"
#include "call/tool_call.h"
#include "call/tool_shelf.h"
#include "call/warden/collect.h"
#include "call/warden/wire.h"
#include "store/quota.h"
#include "store/store.h"

namespace coffer::call {

// A call that was recorded as started: its boundary must be launched, and Descend called, whatever comes.
struct ReadyCall {
  std::string call_id;
  ToolRequest request;
  std::shared_ptr<const policy::Tool> tool;
  RunRequest run;
  std::string stdin_text;
  audit::Receipt receipt;  // what is known before it ran
  HostBudget::Seat seat;   // its place among all calls of this host
};

struct LadderOptions {
  std::string sessions;  // directory of session workspaces
  // Of a tenant and its agents, asked at every admission, from any thread; a tool's own are in its manifest. Empty: none.
  std::function<store::Quotas(const store::TenantId&)> quotas;
  uint32_t max_depth = 3;
  HostBudget* budget = nullptr;  // of all calls together; null: not bounded
  // Why nothing new may begin at the moment, from any thread: the disk is full. Empty: it always may.
  std::function<Status()> may_begin;
  // Told how long a request was evaluated; from any thread. Empty: nobody asks.
  std::function<void(const store::TenantId&, Nanos)> evaluated;
};

class Ladder {
 public:
  Ladder(Recorder& recorder, const ToolShelf& shelf, LadderOptions options)
      : recorder_(recorder),
        store_(recorder.store()),
        shelf_(shelf),
        options_(std::move(options)) {}

  std::variant<ReadyCall, ToolReply> Climb(const ToolRequest& request);
  ToolReply Descend(const ReadyCall& call, Collected collected);
  // A call that could not be launched after all.
  ToolReply DescendUnlaunched(const ReadyCall& call, const Error& error);

 private:
  // Ends a call that was admitted, or asked for, before anything ran.
  ToolReply Refuse(const ToolRequest& request, Ending ending, audit::Receipt receipt,
                   ToolRefusal refusal, const Error& error);
  ToolReply RefuseUnadmitted(const store::AdmitRequest& asked, audit::Receipt receipt,
                             ToolReply reply, const std::string& target = {});
  std::variant<ReadyCall, ToolReply> Evaluated(ReadyCall call, Evaluation evaluation);
  std::optional<policy::Envelope> RunningEnvelope(const std::string& call_id);

  Recorder& recorder_;
  store::Store& store_;
  const ToolShelf& shelf_;
  const LadderOptions options_;
  // Of the calls between Climb and Descend, for the calls that they make.
  std::mutex mutex_;
  std::map<std::string, policy::Envelope> running_;
};

}  // namespace coffer::call
