// SPDX-License-Identifier: Apache-2.0
#include "cli/wrapped_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "audit/receipt.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/local_sessions.h"
#include "cli/remote_exchange.h"
#include "cli/state.h"
#include "cli/wrapped_reads.h"
#include "gateway/mcp/foreign_offers.h"

namespace coffer::cli {
namespace {

constexpr size_t kMostRunning = 64;
constexpr std::chrono::milliseconds kWrappedProgressEvery{200};

Json TextResult(const std::string& text) {
  return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", true}};
}

bool IsFailure(const Json& result) {
  const auto said = result.find("isError");
  return said != result.end() && said->is_boolean() && said->get<bool>();
}

// What of a result goes to the client: members that MCP knows, in the shapes that it knows.
Result<Json> CheckResult(const Json& result, const gateway::ForeignTool& tool,
                         const policy::Manifest& server) {
  const auto content = result.find("content");
  if (content == result.end() || !content->is_array() ||
      !std::all_of(content->begin(), content->end(), [](const Json& item) {
        return item.is_object() && item.contains("type") && item.at("type").is_string();
      })) {
    return Refused("tool.result", "the server's result has no list of content");
  }
  Json made = {{"content", Json::array()}};
  for (const Json& block : *content) {
    TRY_ASSIGN(Json checked, gateway::CheckForeignBlock(block, server.tool.name));
    made["content"].push_back(std::move(checked));
  }
  const auto structured = result.find("structuredContent");
  if (structured != result.end()) {
    if (!structured->is_object() || (tool.output != nullptr && !IsFailure(result) &&
                                     !tool.output->Validate(*structured).empty())) {
      return Refused("tool.result", "the server's result does not fit its own outputSchema");
    }
    made["structuredContent"] = *structured;
  } else if (tool.output != nullptr && !IsFailure(result)) {
    return Refused("tool.result", "the server's result lacks what its outputSchema promises");
  }
  made["isError"] = IsFailure(result);
  const uint64_t most = server.limits.output;
  if (PrintJson(made).size() > most) {
    return Refused("limit.output", fmt::format("the server's result is longer than {} bytes", most),
                   "ask for less");
  }
  return made;
}

audit::Receipt EndOf(const std::string& outcome, const std::string& error_class,
                     const std::string& message) {
  audit::Receipt end;
  end.outcome = outcome;
  end.error_class = error_class;
  end.error_message = message;
  return end;
}

}  // namespace

WrappedCalls::WrappedCalls(LocalLadder& ladder, WrapRequest request, ToolPins pins)
    : ladder_(ladder),
      wrapped_(ladder.state(), std::move(request), std::move(pins), *this),
      climb_(ladder.MakeLadder(wrapped_.shelf())),
      climb_reads_(ladder.MakeLadder(wrapped_.reads())) {}

WrappedCalls::~WrappedCalls() = default;

Result<std::unique_ptr<WrappedCalls>> WrappedCalls::Open(LocalLadder& ladder, WrapRequest request) {
  TRY_ASSIGN(ToolPins pins, ToolPins::Open(ladder.state().directory()));
  std::unique_ptr<WrappedCalls> made(new WrappedCalls(ladder, std::move(request), std::move(pins)));
  TRY(made->wrapped_.Start());
  while (!made->wrapped_.ready()) {
    std::vector<pollfd> polled;
    made->AddTo(&polled);
    ::poll(polled.data(), polled.size(), 200);
    made->Handle(polled);
    if (!made->wrapped_.running()) {
      return HostFault(
          "mcp.server", fmt::format("the server {} did not start", made->wrapped_.name()),
          "what it wrote is above; try the command with `coffer run` and the same flags");
    }
  }
  return made;
}

Json WrappedCalls::Capabilities() const {
  Json offered = McpWork::Capabilities();
  if (wrapped_.has_prompts()) {
    offered["prompts"] = Json::object();
  }
  if (wrapped_.has_resources()) {
    offered["resources"] = Json::object();
  }
  return offered;
}

void WrappedCalls::ListTools(const gateway::McpId& id) {
  server().Answer(id, Json{{"tools", wrapped_.Shown()}});
}

void WrappedCalls::Begin(const gateway::McpCall& call) {
  if (!wrapped_.running()) {
    if (const Status started = wrapped_.Start(); !started.ok()) {
      Refuse(call, started.error());
      return;
    }
  }
  if (wrapped_.ready() && running_.size() < kMostRunning) {
    Start(call);
  } else {
    waiting_.Add(call, server());
  }
}

void WrappedCalls::Refuse(const gateway::McpCall& call, const Error& error) {
  const std::string why = error.message + " (" + error.hint + ")";
  if (IsWrappedRead(call.method)) {
    server().Answer(call.id, gateway::McpError{gateway::McpErrorCode::kInternal, why,
                                               PrintJson({{"code", error.code}})});
  } else {
    server().Answer(call.id, TextResult("[error] " + error.code + ": " + why));
  }
}

call::Ladder& WrappedCalls::LadderOf(const Running& running) const {
  return IsWrappedRead(running.method) ? *climb_reads_ : *climb_;
}

// A read becomes a call of the tool that stands for it; the client asked by a name or a URI of its own.
void WrappedCalls::Start(const gateway::McpCall& call) {
  WrappedRead asked{call.tool, call.args_json, call.args_json};
  const bool read = IsWrappedRead(call.method);
  if (read) {
    const Result<Json> params = ParseJson(call.args_json);
    std::variant<WrappedRead, gateway::McpError> made =
        MakeWrappedRead(wrapped_, call.method, params.ok() ? *params : Json::object());
    if (auto* const error = std::get_if<gateway::McpError>(&made)) {
      server().Answer(call.id, std::move(*error));
      return;
    }
    asked = std::move(std::get<WrappedRead>(made));
  }
  call::ToolRequest request;
  request.identity.agent = kCliAgent;
  request.identity.user = CallerName();
  request.identity.tool = asked.tool;
  request.args_json = asked.args_json;
  call::TakeTrace(call.traceparent, request.identity);
  Running running{
      call.id,  {},          asked.tool, call.method, Clock::now() + wrapped_.request().timeout,
      Nanos(0), Clock::now()};
  std::variant<call::ReadyCall, call::ToolReply> climbed = LadderOf(running).Climb(request);
  if (const auto* answered = std::get_if<call::ToolReply>(&climbed)) {
    Answer(running, *answered, nullptr);
    return;
  }
  running.ready = std::move(std::get<call::ReadyCall>(climbed));
  running.started = ladder_.state().store().Now();
  const uint64_t ask = read ? wrapped_.Request(call.method, asked.params_json)
                            : wrapped_.Call(call.tool, call.args_json);
  running_.emplace(ask, std::move(running));
}

// The last rungs: what came back becomes a receipt and an answer.
void WrappedCalls::Descend(Running& running, audit::Receipt end, const Json* result) {
  end.started_at = running.started;
  end.finished_at = ladder_.state().store().Now();
  end.duration = end.finished_at - end.started_at;
  const policy::Manifest& manifest = wrapped_.request().server;
  end.level = policy::LevelName(manifest.isolation.level);
  end.runtimes = {manifest.run.runtime};
  end.program = "the MCP server " + wrapped_.name();
  call::Collected collected;
  if (result != nullptr) {
    collected.stdout_text = PrintJson(*result);
    end.output_bytes = end.output_produced = collected.stdout_text.size();
    end.output_sha256 = HashOf(collected.stdout_text);
  }
  const int status = end.outcome == "success" ? 0 : 1;
  if (end.error_class.empty()) {
    end.exit_code = status;
  }
  collected.report = call::RunReport{status, std::nullopt, std::move(end), {}};
  Answer(running, LadderOf(running).Descend(running.ready, std::move(collected)), result);
}

void WrappedCalls::Answer(const Running& running, const call::ToolReply& reply,
                          const Json* result) {
  if (result != nullptr && reply.error_class.empty()) {
    server().Answer(running.id, *result);
    return;
  }
  if (IsWrappedRead(running.method)) {
    server().Answer(running.id, WrappedReadError(reply));
    return;
  }
  if (reply.refusal == call::ToolRefusal::kNotFound) {
    const bool blocked = wrapped_.blocked(running.tool);
    server().Answer(
        running.id,
        gateway::McpError{gateway::McpErrorCode::kBadParams,
                          blocked ? fmt::format("{} is blocked: its definition has changed. A "
                                                "person must look at it: `coffer mcp review {}`",
                                                running.tool, wrapped_.name())
                                  : reply.error_message + "; tools/list names those there are",
                          {}});
    return;
  }
  server().Answer(running.id,
                  TextResult("[error] " + reply.error_class + ": " + reply.error_message +
                             (reply.hint.empty() ? "" : " (" + reply.hint + ")")));
}

void WrappedCalls::TakeResult(uint64_t ask, const Json& result) {
  auto found = running_.extract(ask);
  if (!found) {
    return;
  }
  Running& running = found.mapped();
  const policy::Manifest& about = wrapped_.request().server;
  const bool read = IsWrappedRead(running.method);
  const gateway::ForeignTool* const tool = read ? nullptr : wrapped_.Find(running.tool);
  const Result<Json> checked =
      read ? CheckWrappedRead(running.method, result, wrapped_.name(), about.limits.output)
      : tool == nullptr ? Result<Json>(Refused("tool.result", "the tool is gone"))
                        : CheckResult(result, *tool, about);
  if (!checked.ok()) {
    Descend(running, EndOf("error", checked.error().code, checked.error().message), nullptr);
  } else {
    Descend(running, EndOf(IsFailure(*checked) ? "error" : "success", "", ""), &*checked);
  }
}

void WrappedCalls::TakeFailure(uint64_t ask, int64_t code, const std::string& message) {
  if (auto found = running_.extract(ask)) {
    // Of a server's codes the one for "no such resource" is passed on; others are its own affair.
    const bool missing = found.mapped().method == "resources/read" &&
                         (code == static_cast<int>(gateway::McpErrorCode::kNoResource) ||
                          code == static_cast<int>(gateway::McpErrorCode::kBadParams));
    const bool ours = code == kNoRemoteAnswer && !wrapped_.request().first_line.empty();
    Descend(found.mapped(),
            EndOf("error",
                  missing ? kNoResourceClass
                  : ours  ? "mcp.server"
                          : "tool.error",
                  (ours ? "no answer of the server: " : "the server says: ") + Printable(message)),
            nullptr);
  }
}

void WrappedCalls::TakeProgress(uint64_t ask, double progress, const std::string& message) {
  const auto found = running_.find(ask);
  const Clock::time_point now = Clock::now();
  if (found != running_.end() && now - found->second.told >= kWrappedProgressEvery &&
      progress > found->second.progress) {
    found->second.told = now;
    found->second.progress = progress;
    server().Progress(found->second.id, progress, message);
  }
}

void WrappedCalls::ServerEnded(const std::string& why) {
  while (!running_.empty()) {
    auto lost = running_.extract(running_.begin());
    Descend(lost.mapped(),
            EndOf("error", "mcp.server", "the server was ended before it answered: " + why),
            nullptr);
  }
  while (!waiting_.empty()) {
    server().Answer(waiting_.Take().id,
                    TextResult("[error] mcp.server: the server did not start: " + why));
  }
}

void WrappedCalls::Cancel(const gateway::McpId& id, const std::string& reason) {
  const std::string why = reason.empty() ? "" : ": " + Printable(reason.substr(0, 200));
  for (auto at = running_.begin(); at != running_.end(); ++at) {
    if (at->second.id == id) {
      wrapped_.Cancel(at->first);
      auto found = running_.extract(at);
      Descend(found.mapped(),
              EndOf("terminated", "policy.cancelled",
                    "cancelled by the MCP client of " + CallerName() + why),
              nullptr);
      return;
    }
  }
  waiting_.Cancel(id, why, server());
}

bool WrappedCalls::HandleOther(const gateway::McpRequest& request) {
  constexpr std::string_view kKnown[] = {"prompts/", "resources/",     "completion/",
                                         "logging/", "subscriptions/", "tasks/"};
  const bool prompts = request.method == "prompts/list" && wrapped_.has_prompts();
  if (IsWrappedRead(request.method)) {
    Begin({request.id, "", PrintJson(*request.params), "", request.method});
  } else if (prompts ||
             (request.method == "resources/templates/list" && wrapped_.has_resources())) {
    if (request.params->contains("cursor")) {
      server().Answer(request.id, gateway::McpError{gateway::McpErrorCode::kBadParams,
                                                    "there is one page, and no cursor",
                                                    {}});
    } else {
      server().Answer(request.id, prompts ? Json{{"prompts", wrapped_.ShownPrompts()}}
                                          : Json{{"resourceTemplates", wrapped_.ShownTemplates()}});
    }
  } else if (std::any_of(std::begin(kKnown), std::end(kKnown),
                         [&](std::string_view kind) { return request.method.starts_with(kind); })) {
    wrapped_.Tell(fmt::format("the client asks for {}: not passed on", Printable(request.method)));
    server().Answer(request.id, NotPassedOn(wrapped_, request.method));
  } else {
    return false;
  }
  return true;
}

// Moves what the store's log has to where it belongs, so that the log is used again from its start.
// A failure is the next call's.
void WrappedCalls::Rest() { (void)ladder_.state().store().Maintain().ok(); }

void WrappedCalls::CancelAll(const std::string& reason) {
  waiting_.CancelAll(": " + reason, server());
  while (!running_.empty()) {
    Cancel(gateway::McpId(running_.begin()->second.id), reason);
  }
}

// A server that does not answer in time may answer nothing any more: it is ended, and the next call finds a new one.
void WrappedCalls::Expire() {
  const Clock::time_point now = Clock::now();
  const Nanos timeout = wrapped_.request().timeout;
  for (auto at = running_.begin(); at != running_.end(); ++at) {
    if (now >= at->second.deadline) {
      auto late = running_.extract(at);
      Descend(late.mapped(),
              EndOf("terminated", "limit.wall",
                    fmt::format("the server did not answer within {} s",
                                std::chrono::duration_cast<std::chrono::seconds>(timeout).count())),
              nullptr);
      wrapped_.GiveUp("it did not answer in time");
      return;
    }
  }
}

void WrappedCalls::Handle(const std::vector<pollfd>& polled) {
  wrapped_.Handle(polled);
  Expire();
  while (wrapped_.ready() && !waiting_.empty() && running_.size() < kMostRunning) {
    Start(waiting_.Take());
  }
}

}  // namespace coffer::cli
