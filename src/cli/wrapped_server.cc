// SPDX-License-Identifier: Apache-2.0
#include "cli/wrapped_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "audit/receipt.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/text.h"

namespace coffer::cli {
namespace {

constexpr std::chrono::seconds kStartTime{60};  // for a server to list its tools
constexpr size_t kMostStarts = 5;
constexpr std::chrono::minutes kStartsWithin{1};
constexpr size_t kMostTold = 1000;  // sentences; a server decides how many there are
constexpr size_t kMaxReceipt = size_t{4} << 20;

}  // namespace

std::string PromptPin(const std::string& prompt) { return "prompt " + prompt; }
std::string TemplatePin(const std::string& uri_template) { return "template " + uri_template; }

WrappedServer::WrappedServer(State& state, WrapRequest request, ToolPins pins, Caller& caller)
    : state_(state),
      request_(std::move(request)),
      pins_(std::move(pins)),
      caller_(caller),
      shelf_({}),
      reads_({}) {}

WrappedServer::~WrappedServer() = default;

Status WrappedServer::Start() {
  const Clock::time_point now = Clock::now();
  while (!starts_.empty() && now - starts_.front() > kStartsWithin) {
    starts_.pop_front();
  }
  if (starts_.size() >= kMostStarts) {
    return HostFault("mcp.server", "the server ended too often", "try again in a minute");
  }
  starts_.push_back(now);
  TRY_ASSIGN(process_, ServerProcess::Start(name(), request_.run_words));
  gateway::McpClientHost& host = *this;
  client_ = std::make_unique<gateway::McpClient>(
      host, [this](std::string line) { process_->Send(std::move(line)); });
  if (!request_.first_line.empty()) {
    process_->Send(request_.first_line);
  }
  ready_ = false;
  broken_.reset();
  ready_by_ = now + kStartTime;
  client_->Begin();
  return {};
}

void WrappedServer::Tell(const std::string& sentence) {
  if (told_.size() < kMostTold && told_.insert(sentence).second) {
    PrintError("coffer mcp wrap: " + sentence);
  }
}

void WrappedServer::Asked(const std::string& method) {
  Tell(fmt::format("{} asks its client for {}: refused", name(), Printable(method)));
}

void WrappedServer::Listed(const Json& tools, const Json& prompts, const Json& templates) {
  has_prompts_ = client_->has_prompts();
  has_resources_ = client_->has_resources();
  foreign_ = gateway::ReadForeignTools(tools, request_.server);
  prompts_ = gateway::ReadForeignPrompts(prompts, request_.server);
  templates_ = gateway::ReadForeignTemplates(templates, request_.server);
  Definitions seen;
  for (const auto& [exported, tool] : foreign_.tools) {
    seen[exported] = tool.definition;
  }
  for (const auto& [exported, prompt] : prompts_.prompts) {
    seen[PromptPin(exported)] = prompt.definition;
  }
  for (const auto& [shown, one] : templates_.templates) {
    seen[TemplatePin(shown)] = one.definition;
  }
  for (const auto* left_out : {&foreign_.left_out, &prompts_.left_out, &templates_.left_out}) {
    for (const std::string& left : *left_out) {
      Tell("left out: " + left);
    }
  }
  Block(seen);
  std::vector<std::shared_ptr<const policy::Tool>> offered;
  for (const auto& [exported, tool] : foreign_.tools) {
    if (!blocked_.contains(exported)) {
      offered.push_back(tool.tool);
    }
  }
  shelf_.Replace(offered);
  offered = gateway::ForeignReadTools(request_.server);
  for (const auto& [exported, prompt] : prompts_.prompts) {
    if (!blocked_.contains(PromptPin(exported))) {
      offered.push_back(prompt.tool);
    }
  }
  reads_.Replace(offered);
  ready_ = true;
}

void WrappedServer::Block(const Definitions& seen) {
  const coffer::Result<ServerPins> pins = pins_.See(name(), seen);
  blocked_.clear();
  if (!pins.ok()) {  // the accepted tools are not known, so none counts as accepted
    PrintError(pins.error());
    for (const auto& [exported, definition] : seen) {
      blocked_.insert(exported);
    }
    return;
  }
  for (const PinChange& change : ChangesOf(*pins)) {
    blocked_.insert(change.tool);
    Tell(fmt::format(
        "{} is blocked: {}; see `coffer mcp review {}`", change.tool,
        change.before ? "its definition changed after the review" : "it was added after the review",
        name()));
  }
}

Json WrappedServer::Shown() const {
  Json tools = Json::array();
  for (const auto& [exported, tool] : foreign_.tools) {
    if (!blocked_.contains(exported)) {
      tools.push_back(*tool.shown);
    }
  }
  return tools;
}

Json WrappedServer::ShownPrompts() const {
  Json prompts = Json::array();
  for (const auto& [exported, prompt] : prompts_.prompts) {
    if (!blocked_.contains(PromptPin(exported))) {
      prompts.push_back(*prompt.shown);
    }
  }
  return prompts;
}

Json WrappedServer::ShownTemplates() const {
  Json templates = Json::array();
  for (const auto& [shown, one] : templates_.templates) {
    if (!blocked_.contains(TemplatePin(shown))) {
      templates.push_back(*one.shown);
    }
  }
  return templates;
}

const gateway::ForeignPrompt* WrappedServer::FindPrompt(const std::string& prompt) const {
  const auto found = prompts_.prompts.find(prompt);
  return found == prompts_.prompts.end() || blocked(PromptPin(prompt)) ? nullptr : &found->second;
}

const gateway::ForeignTool* WrappedServer::Find(const std::string& tool) const {
  const auto found = foreign_.tools.find(tool);
  return found == foreign_.tools.end() ? nullptr : &found->second;
}

uint64_t WrappedServer::Call(const std::string& tool, const std::string& args_json) {
  return client_->Call(foreign_.tools.at(tool).name, args_json);
}

void WrappedServer::AddTo(std::vector<pollfd>* polled) const {
  if (process_ != nullptr) {
    process_->AddTo(polled);
  }
}

void WrappedServer::Handle(const std::vector<pollfd>& polled) {
  if (process_ == nullptr) {
    return;
  }
  process_->Handle(polled, [this](std::string_view line) { client_->Receive(line); });
  if (!broken_ && !ready_ && Clock::now() >= ready_by_) {
    broken_ = "it did not list its tools in time";
  } else if (!broken_ && process_->ended()) {
    broken_ = "it has closed its output";
  } else if (!broken_ && process_->deaf()) {
    broken_ = "it has closed its input";
  } else if (!broken_ && process_->too_long()) {
    broken_ = "it sends a line longer than 4 MiB";
  } else if (!broken_ && process_->behind()) {
    broken_ = "it does not read what it is sent";
  }
  if (broken_) {
    GiveUp(std::string(*broken_));
  }
}

void WrappedServer::GiveUp(const std::string& why) {
  PrintError(fmt::format("coffer mcp wrap: the server {} is ended: {}", name(), why));
  Stop();
  caller_.ServerEnded(why);
}

void WrappedServer::Stop() {
  if (process_ == nullptr) {
    return;
  }
  process_->Stop();
  for (const std::string& method : client_->refused()) {
    NoteDenied(fmt::format("{} (a request to its client)", Printable(method)),
               "no flag: what a server asks of its client is refused");
  }
  process_.reset();
  client_.reset();
  ready_ = false;
  ReadReceipt();
}

void WrappedServer::NoteDenied(const std::string& what, const std::string& fix) {
  if (denied_.size() < kMostTold || denied_.contains(what)) {
    denied_[what] = fix;
  }
}

void WrappedServer::ReadReceipt() {
  const coffer::Result<std::string> text = sys::ReadRegular(request_.receipt, kMaxReceipt);
  const coffer::Result<audit::Receipt> receipt =
      text.ok() ? audit::ParseReceipt(*text) : coffer::Result<audit::Receipt>(text.error());
  if (receipt.ok()) {
    for (const audit::Denial& denial : receipt->denials) {
      NoteDenied(denial.operation + " " + denial.target + ": " + denial.reason, denial.fix);
    }
    for (const auto& [limit, use] : receipt->limits) {
      if (use.breached) {
        NoteDenied("more " + limit + " than its limit", "--" + limit + " with a larger value");
      }
    }
  }
  ::unlink(request_.receipt.c_str());
}

void WrappedServer::End() {
  Stop();
  Json listed = Json::array();
  for (const auto& [what, fix] : denied_) {
    PrintError(fmt::format("coffer mcp wrap: {} was denied {}", name(), what));
    if (!fix.empty()) {
      PrintError("  to allow it: " + fix);
    }
    listed.push_back(what);
  }
  if (!denied_.empty()) {
    const Status wrote = state_.recorder().Event(
        store::TenantId::Local().name(), "mcp.denied",
        {{"server", name()}, {"denied", PrintJson(listed).substr(0, 2000)}});
    if (!wrote.ok()) {
      PrintError(wrote.error());
    }
  }
}

}  // namespace coffer::cli
