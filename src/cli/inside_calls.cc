// SPDX-License-Identifier: Apache-2.0
#include "cli/inside_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "call/outer_call.h"
#include "cli/local_sessions.h"
#include "gateway/mcp/tool_json.h"
#include "policy/manifest/mistake.h"

namespace coffer::cli {
namespace {

using gateway::McpError;
using gateway::McpErrorCode;

Error NoSuchTool(const std::string& name, const call::ToolShelf& shelf) {
  const std::vector<call::ShelfEntry> entries = shelf.List();
  std::vector<std::string_view> known;
  for (const call::ShelfEntry& entry : entries) {
    known.push_back(entry.name);
  }
  const std::string_view nearest = policy::NearestWord(name, known);
  return Refused("policy.tools", fmt::format("there is no tool called {}", Printable(name)),
                 nearest.empty() ? "`coffer tools list` names them; --tools-dir has your own"
                                 : fmt::format("did you mean {}?", nearest));
}

}  // namespace

struct InsideCalls::Running {
  InsideCaller* caller;
  gateway::McpId id;
  call::ReadyCall ready;
  call::Collector collector;
  std::optional<Error> stopped;
};

InsideCalls::InsideCalls(LocalLadder& ladder, CallingRun run)
    : run_(std::move(run)),
      budget_(run_.envelope.limits, static_cast<uint32_t>(run_.most_calls),
              BootTime() + run_.envelope.limits.wall),
      shelf_(std::vector<std::string>()),
      launcher_(&ladder.allowed(), ladder.tools_maker()) {
  call::LadderOptions options = ladder.Options();
  options.outer_call = [this](const std::string& call_id) { return OuterCall(call_id); };
  ladder_ = std::make_unique<call::Ladder>(ladder.state().recorder(), shelf_, std::move(options));
}

InsideCalls::~InsideCalls() = default;

Result<std::unique_ptr<InsideCalls>> InsideCalls::Open(LocalLadder& ladder, CallingRun run,
                                                       const std::vector<std::string>& tools) {
  std::vector<std::shared_ptr<const policy::Tool>> offered;
  for (const std::string& name : tools) {
    std::shared_ptr<const policy::Tool> tool = ladder.state().shelf().Find(name);
    if (tool == nullptr) {
      return NoSuchTool(name, ladder.state().shelf());
    }
    offered.push_back(std::move(tool));
  }
  std::unique_ptr<InsideCalls> made(new InsideCalls(ladder, std::move(run)));
  made->shelf_.Replace(offered);
  Json shown = Json::array();
  for (const std::shared_ptr<const policy::Tool>& tool : offered) {
    shown.push_back(gateway::McpToolJson(tool->manifest, ladder.project()));
  }
  made->tools_ = std::make_unique<const Json>(Json{{"tools", std::move(shown)}});
  return made;
}

std::optional<Result<policy::Envelope>> InsideCalls::OuterCall(const std::string& call_id) const {
  if (call_id != run_.call_id) {
    return std::nullopt;
  }
  return call::LeftForInner(run_.envelope, budget_, BootTime(), halves_);
}

void InsideCalls::Begin(InsideCaller& caller, const gateway::McpCall& call) {
  if (!budget_.CountRequest()) {
    caller.mcp().Answer(
        call.id, McpError{McpErrorCode::kInternal,
                          fmt::format("{} calls may be made here, and were; `coffer run "
                                      "--tool-calls N`, or calls.most in a manifest, allows more",
                                      run_.most_calls),
                          {}});
    return;
  }
  if (waiting_.Add(caller, call)) {
    BeginWaiting();
  }
}

void InsideCalls::BeginWaiting() {
  while (running_.size() < call::kInnerAtOnce) {
    const InsideWaiting::Waiting* const next = waiting_.Next();
    if (next == nullptr) {
      return;
    }
    const std::shared_ptr<const policy::Tool> tool = shelf_.Find(next->call.tool);
    if (tool != nullptr && !budget_.Fits(call::CountedLimits(tool->manifest.limits, *tool))) {
      return;  // the next one does not overtake it
    }
    const InsideWaiting::Waiting taken = waiting_.Take();
    Start(*taken.caller, taken.call);
  }
}

call::ToolRequest InsideCalls::RequestOf(const InsideCaller& caller,
                                         const gateway::McpCall& call) const {
  call::ToolRequest request;
  request.identity.agent = kCliAgent;
  request.identity.user = fmt::format("uid:{}", ::getuid());
  request.identity.tool = call.tool;
  request.identity.session_id = run_.session;
  request.identity.parent_id = run_.call_id;
  request.args_json = call.args_json;
  call::TakeTrace(call.traceparent, request.identity);
  // A request that one connection sends twice runs once.
  request.idempotency_key =
      HashOf(fmt::format("{}\n{}\n{}", run_.call_id, caller.number(), call.id));
  return request;
}

void InsideCalls::Start(InsideCaller& caller, const gateway::McpCall& call) {
  const auto answer = [&](const call::ToolReply& reply) {
    if (reply.error_class == "policy.tool" && reply.refusal == call::ToolRefusal::kNotFound) {
      caller.mcp().Answer(call.id,
                          McpError{McpErrorCode::kBadParams,
                                   reply.error_message + " here; tools/list names those there are",
                                   {}});
    } else {
      caller.mcp().Answer(call.id, gateway::McpToolResult(call::WithoutHost(reply)));
    }
  };
  const std::shared_ptr<const policy::Tool> tool = shelf_.Find(call.tool);
  halves_ = tool != nullptr && call::CallsTools(*tool);
  std::variant<call::ReadyCall, call::ToolReply> climbed = ladder_->Climb(RequestOf(caller, call));
  if (const auto* answered = std::get_if<call::ToolReply>(&climbed)) {
    answer(*answered);
    return;
  }
  call::ReadyCall& ready = std::get<call::ReadyCall>(climbed);
  ready.run.session = run_.session;
  if (!ready.run.tools.empty()) {
    ready.run.tool_calls = budget_.TakeRequests(ready.run.tool_calls);
  }
  std::variant<call::RunChannels, call::ToolReply> launched = ladder_->Launch(ready, launcher_);
  if (const auto* answered = std::get_if<call::ToolReply>(&launched)) {
    answer(*answered);
    return;
  }
  budget_.Begin(ready.call_id(), call::CountedLimits(ready.run.envelope.limits, *ready.tool));
  running_.push_back(std::unique_ptr<Running>(
      new Running{&caller,
                  call.id,
                  std::move(ready),
                  call::Collector(std::move(std::get<call::RunChannels>(launched)), {}),
                  {}}));
}

void InsideCalls::Kill(Running& running) {
  if (!running.stopped) {
    running.stopped =
        Refused("policy.cancelled", "cancelled by the command that made the call, or by its end");
    launcher_.Kill(running.ready.call_id());
  }
}

void InsideCalls::Cancel(const InsideCaller& caller, const gateway::McpId& id) {
  for (const std::unique_ptr<Running>& running : running_) {
    if (running->caller == &caller && running->id == id) {
      Kill(*running);
    }
  }
  waiting_.Cancel(caller, id);
}

void InsideCalls::CancelAllOf(const InsideCaller& caller) {
  waiting_.CancelAllOf(caller);
  for (const std::unique_ptr<Running>& running : running_) {
    if (running->caller == &caller) {
      Kill(*running);
    }
  }
}

void InsideCalls::CancelAll() {
  waiting_.Clear();
  for (const std::unique_ptr<Running>& running : running_) {
    Kill(*running);
  }
}

bool InsideCalls::HasAny(const InsideCaller& caller) const {
  return std::any_of(running_.begin(), running_.end(),
                     [&](const auto& one) { return one->caller == &caller; }) ||
         waiting_.HasAny(caller);
}

void InsideCalls::AddTo(std::vector<pollfd>* polled) const {
  for (const std::unique_ptr<Running>& running : running_) {
    running->collector.AddTo(polled);
  }
}

void InsideCalls::Handle(const std::vector<pollfd>& polled) {
  for (auto at = running_.begin(); at != running_.end();) {
    Running& running = **at;
    running.collector.ReadReady(polled);
    if (!running.collector.done()) {
      ++at;
      continue;
    }
    End(running);
    at = running_.erase(at);
  }
  BeginWaiting();
}

void InsideCalls::End(Running& running) {
  call::Collected collected = running.collector.Take();
  collected.stopped = std::move(running.stopped);
  const std::string call_id = running.ready.call_id();
  launcher_.Reap(call_id);
  budget_.End(call_id,
              call::CountedCpu(collected, *running.ready.tool, running.ready.run.envelope.limits));
  const call::ToolReply reply = ladder_->Descend(running.ready, std::move(collected));
  running.caller->mcp().Answer(running.id, gateway::McpToolResult(call::WithoutHost(reply)));
}

}  // namespace coffer::cli
