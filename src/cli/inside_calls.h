// SPDX-License-Identifier: Apache-2.0
//
// The calls that the command of a run makes (`coffer run --tools`), or the program of a tool with
// [calls], each as a child of it.
//
// A call climbs the whole ladder: it has the intersection of its manifest's envelope and the run's,
// its parent is the run, and its receipt is in the same log. All of them share the run's budgets
// (policy/call_budget.h). A call that does not fit beside those that run waits for its turn, the
// oldest first. Only tools that the run names are there. A tool that calls tools itself has a
// process like this one beside it, and what that may use is taken from here. Not thread-safe; the
// owner polls.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "call/ladder.h"
#include "call/tool_shelf.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "cli/inside_waiting.h"
#include "cli/inside_work.h"
#include "cli/local_ladder.h"
#include "gateway/mcp/server.h"
#include "policy/call_budget.h"

namespace coffer::cli {

// The run whose command calls.
struct CallingRun {
  std::string call_id;
  std::string session;        // empty: none
  policy::Envelope envelope;  // what it has
  uint64_t most_calls = 0;
};

class InsideCalls : public InsideWork {
 public:
  // Of `ladder`'s tools those that are named. kRefused if one is not there. The time of the run
  // begins when it starts, so its budget does, too. `ladder` outlives this.
  static Result<std::unique_ptr<InsideCalls>> Open(LocalLadder& ladder, CallingRun run,
                                                   const std::vector<std::string>& tools);
  ~InsideCalls() override;

  const Json& Tools() const override { return *tools_; }
  void Begin(InsideCaller& caller, const gateway::McpCall& call) override;
  void Cancel(const InsideCaller& caller, const gateway::McpId& id) override;
  void CancelAllOf(const InsideCaller& caller) override;
  void CancelAll() override;
  bool HasAny(const InsideCaller& caller) const override;
  bool idle() const override { return running_.empty() && waiting_.empty(); }

  void AddTo(std::vector<pollfd>* polled) const override;
  void Handle(const std::vector<pollfd>& polled) override;

 private:
  struct Running;
  InsideCalls(LocalLadder& ladder, CallingRun run);
  std::optional<Result<policy::Envelope>> OuterCall(const std::string& call_id) const;
  call::ToolRequest RequestOf(const InsideCaller& caller, const gateway::McpCall& call) const;
  void BeginWaiting();
  void Start(InsideCaller& caller, const gateway::McpCall& call);
  void Kill(Running& running);
  void End(Running& running);

  const CallingRun run_;
  policy::CallBudget budget_;
  bool halves_ = false;  // the call that climbs calls tools itself
  call::ToolShelf shelf_;
  std::unique_ptr<const Json> tools_;  // the answer of tools/list
  std::unique_ptr<call::Ladder> ladder_;
  call::LocalLauncher launcher_;
  std::list<std::unique_ptr<Running>> running_;
  InsideWaiting waiting_;
};

}  // namespace coffer::cli
