// SPDX-License-Identifier: Apache-2.0
#include "cli/mcp_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "cli/mcp_files.h"
#include "cli/session_forwards.h"
#include "cli/state.h"
#include "gateway/mcp/tool_json.h"
#include "store/session.h"

namespace coffer::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kProgressEvery{1};

Result<store::Session> MakeSession(LocalLadder& ladder, LocalSessions& sessions) {
  TRY_ASSIGN(store::SessionRequest request,
             sessions.UsualRequest(ladder.config().RulesOf(store::TenantId::Local())));
  request.label = "coffer mcp";
  return sessions.Make(std::move(request));
}

}  // namespace

struct McpCalls::Running {
  gateway::McpId id;
  call::ReadyCall ready;
  call::Collector collector;
  Clock::time_point begun = Clock::now();
  Clock::time_point told = Clock::now();
  size_t printed = 0;
  std::optional<Error> stopped;

  Running(gateway::McpId call_id, call::ReadyCall call, call::RunChannels channels)
      : id(std::move(call_id)),
        ready(std::move(call)),
        collector(std::move(channels),
                  [this](call::Stream, std::string_view piece) { printed += piece.size(); }) {}
};

McpCalls::McpCalls(LocalLadder& ladder, LocalSessions::Held session, bool own,
                   std::string process_token)
    : ladder_(ladder),
      launcher_(&ladder.allowed(), ladder.tools_maker()),
      processes_(ladder, launcher_),
      session_(std::move(session)),
      own_session_(own),
      process_token_(std::move(process_token)) {}

McpCalls::~McpCalls() = default;

Result<std::unique_ptr<McpCalls>> McpCalls::Open(LocalLadder& ladder, const std::string& session) {
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(ladder.state()));
  TRY(sessions.Sweep());
  std::string id = session;
  if (id.empty()) {
    TRY_ASSIGN(const store::Session made, MakeSession(ladder, sessions));
    id = made.id;
  }
  TRY_ASSIGN(LocalSessions::Held held, sessions.Hold(id));
  TRY_ASSIGN(std::string token, NewId());
  return std::unique_ptr<McpCalls>(
      new McpCalls(ladder, std::move(held), session.empty(), std::move(token)));
}

void McpCalls::ListTools(const gateway::McpId& id) {
  Json tools = Json::array();
  for (const call::ShelfEntry& entry : ladder_.state().shelf().List()) {
    if (entry.tool != nullptr) {
      tools.push_back(gateway::McpToolJson(entry.tool->manifest, ladder_.project()));
    }
  }
  for (Json& tool :
       processes_.offered() ? gateway::ProcessToolsJson("this connection") : std::vector<Json>()) {
    if (ladder_.state().shelf().Find(tool.value("name", "")) == nullptr) {
      tools.push_back(std::move(tool));
    }
  }
  server().Answer(id, Json{{"tools", std::move(tools)}});
}

Json McpCalls::Capabilities() const {
  Json offered = McpWork::Capabilities();
  if (ladder_.project().empty()) {
    offered["resources"] = Json::object();
  }
  return offered;
}

bool McpCalls::HandleOther(const gateway::McpRequest& request) {
  if (!ladder_.project().empty()) {
    return false;
  }
  std::optional<McpFiles::Answer> answer = McpFiles(session_).Handle(ladder_.state(), request);
  if (!answer) {
    return false;
  }
  std::visit([&](auto& made) { server().Answer(request.id, std::move(made)); }, *answer);
  return true;
}

void McpCalls::Begin(const gateway::McpCall& call) {
  if (running_.size() < kAtOnce) {
    Start(call);
  } else {
    waiting_.Add(call, server());
  }
}

call::ToolRequest McpCalls::RequestOf(const gateway::McpCall& call) const {
  call::ToolRequest request;
  request.identity.agent = kCliAgent;
  request.identity.user = CallerName();
  request.identity.tool = call.tool;
  request.identity.session_id = session_.session.id;
  request.args_json = call.args_json;
  call::TakeTrace(call.traceparent, request.identity);
  call::UseRequestId(process_token_ + "\n" + call.id, request);
  return request;
}

void McpCalls::Start(const gateway::McpCall& call) {
  const call::ToolRequest request = RequestOf(call);
  const std::optional<gateway::ProcessTool> process = gateway::FindProcessTool(call.tool);
  // A manifest of the same name counts.
  if (process && processes_.offered() && ladder_.state().shelf().Find(call.tool) == nullptr) {
    McpProcesses::Answer answer = processes_.Call(*process, call.args_json, request);
    std::visit([&](auto& made) { server().Answer(call.id, std::move(made)); }, answer);
    return;
  }
  std::variant<call::ReadyCall, call::ToolReply> climbed = ladder_.ladder().Climb(request);
  if (const auto* answered = std::get_if<call::ToolReply>(&climbed)) {
    Finish(call.id, *answered);
    return;
  }
  call::ReadyCall& ready = std::get<call::ReadyCall>(climbed);
  ready.run.session = session_.session.id;
  // Without its ports the call still does what its manifest says; a tool that needs them says so itself.
  const Result<std::vector<UniqueFd>> ports =
      ForwardSessionPorts(ladder_.state().directory(), session_.session.id, ready.run);
  processes_.AddPorts(ready.run);
  std::variant<call::RunChannels, call::ToolReply> launched =
      ladder_.ladder().Launch(ready, launcher_);
  if (const auto* answered = std::get_if<call::ToolReply>(&launched)) {
    Finish(call.id, *answered);
    return;
  }
  running_.push_back(std::make_unique<Running>(call.id, std::move(ready),
                                               std::move(std::get<call::RunChannels>(launched))));
}

void McpCalls::Finish(const gateway::McpId& id, const call::ToolReply& reply) {
  // An unknown tool is a mistake of the protocol's user, not of a tool.
  if (reply.error_class == "policy.tool" && reply.refusal == call::ToolRefusal::kNotFound) {
    server().Answer(id,
                    gateway::McpError{gateway::McpErrorCode::kBadParams,
                                      reply.error_message + "; tools/list names those there are",
                                      {}});
    return;
  }
  server().Answer(id, gateway::McpToolResult(reply));
}

void McpCalls::Cancel(const gateway::McpId& id, const std::string& reason) {
  const std::string why = reason.empty() ? "" : ": " + Printable(reason.substr(0, 200));
  for (const std::unique_ptr<Running>& running : running_) {
    if (running->id == id && !running->stopped) {
      running->stopped =
          Refused("policy.cancelled", "cancelled by the MCP client of " + CallerName() + why);
      launcher_.Kill(running->ready.call_id());
    }
  }
  waiting_.Cancel(id, why, server());
}

// Moves what the store's log has to where it belongs, so that the log is used again from its start.
// A failure is the next call's.
void McpCalls::Rest() { (void)ladder_.state().store().Maintain().ok(); }

void McpCalls::CancelAll(const std::string& reason) {
  waiting_.CancelAll(": " + reason, server());
  for (const std::unique_ptr<Running>& running : running_) {
    Cancel(gateway::McpId(running->id), reason);
  }
}

void McpCalls::AddTo(std::vector<pollfd>* polled) const {
  processes_.AddTo(polled);
  for (const std::unique_ptr<Running>& running : running_) {
    running->collector.AddTo(polled);
  }
}

void McpCalls::Handle(const std::vector<pollfd>& polled) {
  processes_.Handle(polled);
  for (auto at = running_.begin(); at != running_.end();) {
    Running& running = **at;
    running.collector.ReadReady(polled);
    if (!running.collector.done()) {
      TellProgress(running);
      ++at;
      continue;
    }
    call::Collected collected = running.collector.Take();
    collected.stopped = std::move(running.stopped);
    launcher_.Reap(running.ready.call_id());
    Finish(running.id, ladder_.ladder().Descend(running.ready, std::move(collected)));
    at = running_.erase(at);
  }
  while (!waiting_.empty() && running_.size() < kAtOnce) {
    Start(waiting_.Take());
  }
}

void McpCalls::TellProgress(Running& running) {
  const Clock::time_point now = Clock::now();
  if (now - running.told >= kProgressEvery) {
    running.told = now;
    const double seconds = std::chrono::duration<double>(now - running.begun).count();
    server().Progress(
        running.id, seconds,
        fmt::format("running for {:.0f} s, {} bytes of output", seconds, running.printed));
  }
}

Status McpCalls::End() {
  processes_.EndAll();
  if (!own_session_) {
    return {};
  }
  const store::TenantId tenant = store::TenantId::Local();
  TRY_ASSIGN(const store::EndedSession ended,
             store::EndSession(ladder_.state().store(), tenant, session_.session.id,
                               "ended with coffer mcp by " + CallerName()));
  TRY(ladder_.state().recorder().Event(tenant.name(), "session.ended",
                                       {{"by", CallerName()}, {"session", session_.session.id}}));
  session_.lock.Reset();
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(ladder_.state()));
  TRY(sessions.EndProcesses(session_.session.id, ProcessPlaces::Wait::kYes));
  TRY_ASSIGN(const bool removed, sessions.RemoveFiles(ended.session));
  (void)removed;  // false: another call uses them, and a later sweep removes them
  return {};
}

}  // namespace coffer::cli
