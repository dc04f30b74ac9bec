// SPDX-License-Identifier: Apache-2.0
#include "cli/wrapped_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "audit/receipt.h"
#include "base/exit_codes.h"
#include "base/hash.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "cli/local_sessions.h"
#include "gateway/mcp/stranger_text.h"

namespace coffer::cli {
namespace {

constexpr std::chrono::seconds kStartTime{60};  // for a server to list its tools
constexpr size_t kMostWaiting = 256;
constexpr size_t kMostRunning = 64;
constexpr size_t kMostStarts = 5;
constexpr std::chrono::minutes kStartsWithin{1};
constexpr std::chrono::milliseconds kProgressEvery{200};
constexpr size_t kMaxReceipt = size_t{4} << 20;

std::string Who() { return fmt::format("uid:{}", ::getuid()); }

Json TextResult(const std::string& text) {
  return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", true}};
}

bool IsFailure(const Json& result) {
  const auto said = result.find("isError");
  return said != result.end() && said->is_boolean() && said->get<bool>();
}

// What of a result goes to the client: members that MCP knows, in the shapes that it knows.
coffer::Result<Json> CheckResult(const Json& result, const gateway::ForeignTool& tool,
                                 uint64_t most) {
  const auto content = result.find("content");
  if (content == result.end() || !content->is_array() ||
      !std::all_of(content->begin(), content->end(), [](const Json& item) {
        return item.is_object() && item.contains("type") && item.at("type").is_string();
      })) {
    return Refused("tool.result", "the server's result has no list of content");
  }
  Json made = {{"content", *content}};
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
      request_(std::move(request)),
      pins_(std::move(pins)),
      shelf_({}),
      climb_(ladder.MakeLadder(shelf_)) {}

WrappedCalls::~WrappedCalls() = default;

coffer::Result<std::unique_ptr<WrappedCalls>> WrappedCalls::Open(LocalLadder& ladder,
                                                                 WrapRequest request) {
  TRY_ASSIGN(ToolPins pins, ToolPins::Open(ladder.state().directory()));
  std::unique_ptr<WrappedCalls> made(new WrappedCalls(ladder, std::move(request), std::move(pins)));
  TRY(made->StartServer());
  while (!made->ready_) {
    std::vector<pollfd> polled;
    made->AddTo(&polled);
    ::poll(polled.data(), polled.size(), 200);
    made->Handle(polled);
    if (made->process_ == nullptr) {
      return HostFault(
          "mcp.server", fmt::format("the server {} did not start", made->request_.server.tool.name),
          "what it wrote is above; try the command with `coffer run` and the same flags");
    }
  }
  return made;
}

Status WrappedCalls::StartServer() {
  const Clock::time_point now = Clock::now();
  while (!starts_.empty() && now - starts_.front() > kStartsWithin) {
    starts_.pop_front();
  }
  if (starts_.size() >= kMostStarts) {
    return HostFault("mcp.server", "the server ended too often", "try again in a minute");
  }
  starts_.push_back(now);
  TRY_ASSIGN(process_, ServerProcess::Start(request_.server.tool.name, request_.run_words));
  gateway::McpClientHost& host = *this;
  client_ = std::make_unique<gateway::McpClient>(
      host, [this](std::string line) { process_->Send(std::move(line)); });
  ready_ = false;
  broken_.reset();
  ready_by_ = now + kStartTime;
  client_->Begin();
  return {};
}

void WrappedCalls::Listed(const Json& tools) {
  const std::string& name = request_.server.tool.name;
  foreign_ = gateway::ReadForeignTools(tools, request_.server);
  Definitions seen;
  for (const auto& [exported, tool] : foreign_.tools) {
    seen[exported] = tool.definition;
  }
  const auto tell = [this](const std::string& sentence) {
    if (told_.insert(sentence).second) {
      PrintError("coffer mcp wrap: " + sentence);
    }
  };
  for (const std::string& left : foreign_.left_out) {
    tell("left out: " + left);
  }
  coffer::Result<ServerPins> pins = pins_.See(name, seen);
  blocked_.clear();
  if (!pins.ok()) {  // what was accepted is not known, so nothing is
    PrintError(pins.error());
    for (const auto& [exported, definition] : seen) {
      blocked_.insert(exported);
    }
  } else {
    for (const PinChange& change : ChangesOf(*pins)) {
      blocked_.insert(change.tool);
      tell(fmt::format("{} is blocked: {}; see `coffer mcp review {}`", change.tool,
                       change.before ? "its definition has changed since it was accepted"
                                     : "it is new since the server's tools were accepted",
                       name));
    }
  }
  std::vector<std::shared_ptr<const policy::Tool>> offered;
  for (const auto& [exported, tool] : foreign_.tools) {
    if (!blocked_.contains(exported)) {
      offered.push_back(tool.tool);
    }
  }
  shelf_.Replace(offered);
  ready_ = true;
}

void WrappedCalls::ListTools(const gateway::McpId& id) {
  Json tools = Json::array();
  for (const auto& [exported, tool] : foreign_.tools) {
    if (!blocked_.contains(exported)) {
      tools.push_back(*tool.shown);
    }
  }
  server().Answer(id, Json{{"tools", std::move(tools)}});
}

void WrappedCalls::Begin(const gateway::McpCall& call) {
  if (process_ == nullptr) {
    if (const Status started = StartServer(); !started.ok()) {
      server().Answer(
          call.id, TextResult("[error] " + started.error().code + ": " + started.error().message +
                              " (" + started.error().hint + ")"));
      return;
    }
  }
  if (ready_ && running_.size() < kMostRunning) {
    Start(call);
  } else if (waiting_.size() < kMostWaiting) {
    waiting_.push_back(call);
  } else {
    server().Answer(call.id, gateway::McpError{gateway::McpErrorCode::kInternal,
                                               "too many calls wait; send it again later",
                                               {}});
  }
}

void WrappedCalls::Start(const gateway::McpCall& call) {
  call::ToolRequest request;
  request.identity.agent = kCliAgent;
  request.identity.user = Who();
  request.identity.tool = call.tool;
  request.args_json = call.args_json;
  call::TakeTrace(call.traceparent, request.identity);
  std::variant<call::ReadyCall, call::ToolReply> climbed = climb_->Climb(request);
  Running running{call.id, {}, call.tool, Clock::now() + request_.timeout, Nanos(0), Clock::now()};
  if (const auto* answered = std::get_if<call::ToolReply>(&climbed)) {
    Answer(running, *answered, nullptr);
    return;
  }
  running.ready = std::move(std::get<call::ReadyCall>(climbed));
  running.started = ladder_.state().store().Now();
  const uint64_t ask = client_->Call(foreign_.tools.at(call.tool).name, call.args_json);
  running_.emplace(ask, std::move(running));
}

// The last rungs: what came back becomes a receipt and an answer.
void WrappedCalls::Descend(Running& running, audit::Receipt end, const Json* result) {
  end.started_at = running.started;
  end.finished_at = ladder_.state().store().Now();
  end.duration = end.finished_at - end.started_at;
  end.level = policy::LevelName(request_.server.isolation.level);
  end.runtimes = {request_.server.run.runtime};
  end.program = "the MCP server " + request_.server.tool.name;
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
  Answer(running, climb_->Descend(running.ready, std::move(collected)), result);
}

void WrappedCalls::Answer(const Running& running, const call::ToolReply& reply,
                          const Json* result) {
  if (result != nullptr && reply.error_class.empty()) {
    server().Answer(running.id, *result);
    return;
  }
  if (reply.refusal == call::ToolRefusal::kNotFound) {
    const bool blocked = blocked_.contains(running.tool);
    server().Answer(
        running.id,
        gateway::McpError{gateway::McpErrorCode::kBadParams,
                          blocked ? fmt::format("{} is blocked: its definition has changed. A "
                                                "person must look at it: `coffer mcp review {}`",
                                                running.tool, request_.server.tool.name)
                                  : reply.error_message + "; tools/list names those there are",
                          {}});
    return;
  }
  server().Answer(running.id,
                  TextResult("[error] " + reply.error_class + ": " + reply.error_message +
                             (reply.hint.empty() ? "" : " (" + reply.hint + ")")));
}

void WrappedCalls::Result(uint64_t ask, const Json& result) {
  auto found = running_.extract(ask);
  if (!found) {
    return;
  }
  Running& running = found.mapped();
  const auto tool = foreign_.tools.find(running.tool);
  const coffer::Result<Json> checked =
      tool == foreign_.tools.end()
          ? coffer::Result<Json>(Refused("tool.result", "the tool is gone"))
          : CheckResult(result, tool->second, request_.server.limits.output);
  if (!checked.ok()) {
    Descend(running, EndOf("error", checked.error().code, checked.error().message), nullptr);
  } else {
    Descend(running, EndOf(IsFailure(*checked) ? "error" : "success", "", ""), &*checked);
  }
}

void WrappedCalls::Failed(uint64_t ask, const std::string& message) {
  if (auto found = running_.extract(ask)) {
    Descend(found.mapped(), EndOf("error", "tool.error", "the server says: " + Printable(message)),
            nullptr);
  }
}

void WrappedCalls::Progressed(uint64_t ask, double progress, const std::string& message) {
  const auto found = running_.find(ask);
  const Clock::time_point now = Clock::now();
  if (found != running_.end() && now - found->second.told >= kProgressEvery) {
    found->second.told = now;
    server().Progress(found->second.id, progress, message);
  }
}

void WrappedCalls::Broken(const std::string& why) { broken_ = why; }

void WrappedCalls::GiveUp(const std::string& why) {
  PrintError(
      fmt::format("coffer mcp wrap: the server {} is ended: {}", request_.server.tool.name, why));
  StopServer();
  while (!running_.empty()) {
    auto lost = running_.extract(running_.begin());
    Descend(lost.mapped(),
            EndOf("error", "mcp.server", "the server was ended before it answered: " + why),
            nullptr);
  }
  while (!waiting_.empty()) {
    const gateway::McpCall call = std::move(waiting_.front());
    waiting_.pop_front();
    server().Answer(call.id, TextResult("[error] mcp.server: the server did not start: " + why));
  }
}

void WrappedCalls::StopServer() {
  if (process_ == nullptr) {
    return;
  }
  process_->Stop();
  for (const std::string& method : client_->refused()) {
    denied_[fmt::format("{} (a request to its client)", Printable(method))] =
        "no flag: what a server asks of its client is refused";
  }
  process_.reset();
  client_.reset();
  ready_ = false;
  ReadReceipt();
}

void WrappedCalls::ReadReceipt() {
  const coffer::Result<std::string> text = sys::ReadRegular(request_.receipt, kMaxReceipt);
  const coffer::Result<audit::Receipt> receipt =
      text.ok() ? audit::ParseReceipt(*text) : coffer::Result<audit::Receipt>(text.error());
  if (receipt.ok()) {
    for (const audit::Denial& denial : receipt->denials) {
      denied_[denial.operation + " " + denial.target + ": " + denial.reason] = denial.fix;
    }
    for (const auto& [limit, use] : receipt->limits) {
      if (use.breached) {
        denied_["more " + limit + " than its limit"] = "--" + limit + " with a larger value";
      }
    }
  }
  ::unlink(request_.receipt.c_str());
}

void WrappedCalls::Cancel(const gateway::McpId& id, const std::string& reason) {
  const std::string why = "cancelled by the MCP client of " + Who() +
                          (reason.empty() ? "" : ": " + Printable(reason.substr(0, 200)));
  for (auto at = running_.begin(); at != running_.end(); ++at) {
    if (at->second.id == id) {
      client_->Cancel(at->first);
      auto found = running_.extract(at);
      Descend(found.mapped(), EndOf("terminated", "policy.cancelled", why), nullptr);
      return;
    }
  }
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const gateway::McpCall& call) { return call.id == id; });
  if (waits != waiting_.end()) {
    waiting_.erase(waits);
    server().Answer(id, gateway::McpError{gateway::McpErrorCode::kInternal, why, {}});
  }
}

void WrappedCalls::CancelAll(const std::string& reason) {
  while (!waiting_.empty()) {
    Cancel(gateway::McpId(waiting_.back().id), reason);
  }
  while (!running_.empty()) {
    Cancel(gateway::McpId(running_.begin()->second.id), reason);
  }
}

void WrappedCalls::AddTo(std::vector<pollfd>* polled) const {
  if (process_ != nullptr) {
    process_->AddTo(polled);
  }
}

// A server that does not answer in time may answer nothing any more: it is ended, and the next call finds a new one.
void WrappedCalls::Expire() {
  const Clock::time_point now = Clock::now();
  for (auto at = running_.begin(); at != running_.end(); ++at) {
    if (now >= at->second.deadline) {
      auto late = running_.extract(at);
      Descend(
          late.mapped(),
          EndOf("terminated", "limit.wall",
                fmt::format(
                    "the server did not answer within {} s",
                    std::chrono::duration_cast<std::chrono::seconds>(request_.timeout).count())),
          nullptr);
      broken_ = "it did not answer in time";
      return;
    }
  }
  if (!ready_ && now >= ready_by_) {
    broken_ = "it did not list its tools in time";
  }
}

void WrappedCalls::Handle(const std::vector<pollfd>& polled) {
  if (process_ == nullptr) {
    return;
  }
  process_->Handle(polled, [this](std::string_view line) { client_->Receive(line); });
  Expire();
  if (!broken_ && process_->ended()) {
    broken_ = "it has closed its output";
  } else if (!broken_ && process_->behind()) {
    broken_ = "it does not read what it is sent";
  }
  if (broken_) {
    GiveUp(std::string(*broken_));
    return;
  }
  while (ready_ && !waiting_.empty() && running_.size() < kMostRunning) {
    const gateway::McpCall next = std::move(waiting_.front());
    waiting_.pop_front();
    Start(next);
  }
}

void WrappedCalls::End() {
  StopServer();
  const std::string& name = request_.server.tool.name;
  Json listed = Json::array();
  for (const auto& [what, fix] : denied_) {
    PrintError(fmt::format("coffer mcp wrap: {} was denied {}{}", name, what,
                           fix.empty() ? "" : "\n  to allow it: " + fix));
    listed.push_back(what);
  }
  if (!denied_.empty()) {
    const Status wrote = ladder_.state().recorder().Event(
        store::TenantId::Local().name(), "mcp.denied",
        {{"server", name}, {"denied", PrintJson(listed).substr(0, 2000)}});
    if (!wrote.ok()) {
      PrintError(wrote.error());
    }
  }
}

}  // namespace coffer::cli
