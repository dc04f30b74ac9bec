// SPDX-License-Identifier: Apache-2.0
//
// The ladder of a declared tool: every rung of a call, in order, in one file (ladder.cc).
//
//   Climb     evaluate, admit, [scan, gate], record [, lease]: a call that may be launched, or an answer
//   Launch    launch: the boundary, by the launcher that the caller hands in (call/warden/launcher.h)
//             watch: the caller collects what the runner sends, with a sink of its own (call/warden/collect.h)
//   Descend   [inspect], settle, seal: what came back becomes an answer and a receipt
//
// `coffer call` goes from top to bottom in one go, the gateway beside everything else; both only
// adapt. A rung in brackets has no surface yet: a manifest that asks for it does not load. A new
// rung is a method here and a line in kRungs.
//
// Arguments are evaluated before anything is taken from rates and budgets. Once a call is admitted
// it ends in the store, whatever happens here; what the store and the log cannot write does not
// run. Every request that is not a repetition has a receipt (call/recorder.h). Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "call/agent_words.h"
#include "call/host_budget.h"
#include "call/recorder.h"
#include "call/run/run_request.h"
#include "call/tool_call.h"
#include "call/tool_shelf.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "store/quota.h"
#include "store/store.h"

namespace coffer::call {

// A call that was recorded as started: its boundary must be launched, and Descend called, whatever comes.
struct ReadyCall {
  ToolRequest request;  // its identity has the call's id by now
  std::shared_ptr<const policy::Tool> tool;
  RunRequest run;
  std::string stdin_text;
  audit::Receipt receipt;  // what is known before it ran
  HostBudget::Seat seat;   // its place among all calls of this host
  const std::string& call_id() const { return request.identity.call_id; }
};

struct LadderOptions {
  std::string sessions;  // directory of session workspaces
  std::string project;   // the caller's, in place of every session's files; empty: none
  // Of a tenant and its agents, asked at every admission, from any thread; a tool's own are in its
  // manifest. Empty: none.
  std::function<store::Quotas(const store::TenantId&)> quotas;
  uint32_t max_depth = 3;
  bool offers_tools =
      false;  // what launches calls serves the tools that a manifest's [calls] names
  // What a call that runs elsewhere has left, for the calls that it makes: nothing if it is not
  // known. An Error: it may make none now. Empty: only calls of this ladder make calls.
  std::function<std::optional<Result<policy::Envelope>>(const std::string& call_id)> outer_call;
  // Whether the record keeps what the tenant's calls run and print; from any thread. Empty: it does.
  std::function<bool(const store::TenantId&)> keeps_transcripts;
  HostBudget* budget = nullptr;  // of all calls together; null: not bounded
  // Why nothing new may begin at the moment, from any thread: the disk is full. Empty: it always may.
  std::function<Status()> may_begin;
  // Told how long a request was evaluated; from any thread. May be empty.
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
  // A call that cannot be launched has ended: the reply is its answer.
  std::variant<RunChannels, ToolReply> Launch(ReadyCall& call, Launcher& launcher);
  ToolReply Descend(const ReadyCall& call, Collected collected);
  // A call that could not be launched after all.
  ToolReply DescendUnlaunched(const ReadyCall& call, const Error& error);

 private:
  struct Asked;  // a request on its way up
  // A rung ends the call with an answer, or lets it go on.
  using Rung = std::optional<ToolReply> (Ladder::*)(Asked&);
  std::optional<ToolReply> Understand(Asked& asked);
  std::optional<ToolReply> FindWorkspace(Asked& asked);
  std::optional<ToolReply> EvaluateArgs(Asked& asked);
  std::optional<ToolReply> CheckHost(Asked& asked);
  std::optional<ToolReply> Admit(Asked& asked);
  std::optional<ToolReply> Decide(Asked& asked);
  std::optional<ToolReply> Rehearse(Asked& asked);
  std::optional<ToolReply> Record(Asked& asked);
  static const Rung kRungs[];

  Asked Describe(const ToolRequest& request) const;
  // Ends a call that was admitted before anything ran. `words`: what the error may name of the host.
  ToolReply Refuse(Ending ending, audit::Receipt receipt, ToolRefusal refusal, const Error& error,
                   const std::vector<HostWord>& words);
  // The answer to a request of this tenant that would be refused, if no more refusals of it are recorded now.
  std::optional<ToolReply> RefuseLater(const store::TenantId& tenant) const;
  // Ends a request that was not admitted. `target`: the object that the request named, if it is not the tool.
  ToolReply RefuseUnadmitted(const Asked& asked, ToolReply reply, const std::string& target = {});
  // What the record keeps of what ran; empty where the tool or the tenant keeps hashes only.
  std::string TranscriptOf(const ReadyCall& call, const Collected& collected) const;
  // What the parent of a call has, as far as it is known here.
  Result<policy::Envelope> ParentEnvelope(const ToolRequest& request);
  // Whether Decide and Rehearse would let it go on.
  bool MayRun(const Asked& asked);
  // Whether this program can run it, with no more than its parent has.
  Status FitIntoParent(const ToolRequest& request, RunRequest& run);
  // A call that a call makes has at most what the outer call has.
  Status NarrowToParent(const ToolRequest& request, RunRequest& run);

  Recorder& recorder_;
  store::Store& store_;
  const ToolShelf& shelf_;
  const LadderOptions options_;
  // Of the calls between Climb and Descend, for the calls that they make.
  std::mutex mutex_;
  std::map<std::string, policy::Envelope> running_;
};

}  // namespace coffer::call
