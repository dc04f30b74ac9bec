// SPDX-License-Identifier: Apache-2.0
//
// A wrapped MCP server: its process in one boundary (server_process.h), the conversation with it,
// and those of its tools, prompts and templates of resources that may be used (tool_pins.h).
//
// A server that ends, hangs, floods or speaks nonsense is ended, and its caller hears of it; Start
// starts it again, but not more often than a few times a minute. What it was denied in all its
// lives is said by End. Not thread-safe; the owner polls.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "call/tool_shelf.h"
#include "cli/server_process.h"
#include "cli/state.h"
#include "cli/tool_pins.h"
#include "gateway/mcp/client.h"
#include "gateway/mcp/foreign_offers.h"
#include "gateway/mcp/foreign_tools.h"

namespace coffer::cli {

struct WrapRequest {
  policy::Manifest server;             // what its boundary is; its name is the prefix of its tools
  std::vector<std::string> run_words;  // `run`, flags, `--`, the command
  Nanos timeout{0};                    // of one call
  std::string first_line;              // for its stdin, before the conversation; may be empty
  std::string receipt;                 // where `run_words` put the receipt of the server
};

// Under which name a prompt or a template is pinned: none that a tool can have.
std::string PromptPin(const std::string& prompt);
std::string TemplatePin(const std::string& uri_template);

class WrappedServer : private gateway::McpClientHost {
 public:
  // Hears what comes of calls.
  class Caller {
   public:
    virtual ~Caller() = default;
    virtual void TakeResult(uint64_t ask, const Json& result) = 0;
    virtual void TakeFailure(uint64_t ask, int64_t code, const std::string& message) = 0;
    virtual void TakeProgress(uint64_t ask, double progress, const std::string& message) = 0;
    // The server is gone, and no call of it is answered any more.
    virtual void ServerEnded(const std::string& why) = 0;
  };
  // Both outlive this.
  WrappedServer(State& state, WrapRequest request, ToolPins pins, Caller& caller);
  ~WrappedServer() override;

  // Refused if it was started too often lately. It is ready when its tools are known.
  Status Start();
  bool running() const { return process_ != nullptr; }
  bool ready() const { return ready_; }
  // Ends it now, and its calls with it. Not from a method of the Caller.
  void GiveUp(const std::string& why);
  // Ends it and says what it was denied, in words and with the flags that would allow it.
  void End();

  const std::string& name() const { return request_.server.tool.name; }
  const WrapRequest& request() const { return request_; }
  // The tools that may be called, for a ladder and as tools/list has them.
  const call::ToolShelf& shelf() const { return shelf_; }
  Json Shown() const;
  // By the name that agents use; null: there is no such tool.
  const gateway::ForeignTool* Find(const std::string& tool) const;
  // A name that agents use, or a pin.
  bool blocked(const std::string& pin) const { return blocked_.contains(pin); }

  // What it said it has when it was last started.
  bool has_prompts() const { return has_prompts_; }
  bool has_resources() const { return has_resources_; }
  // For a ladder: its prompts that may be used, and the ways to read its resources.
  const call::ToolShelf& reads() const { return reads_; }
  Json ShownPrompts() const;
  Json ShownTemplates() const;
  // Null: there is no such prompt, or it is blocked.
  const gateway::ForeignPrompt* FindPrompt(const std::string& prompt) const;

  // Says a sentence on stderr, once.
  void Tell(const std::string& sentence);
  // While it is ready, for a tool that Find finds.
  uint64_t Call(const std::string& tool, const std::string& args_json);
  uint64_t Request(const std::string& method, const std::string& params_json) {
    return client_->Request(method, params_json);
  }
  void Cancel(uint64_t ask) { client_->Cancel(ask); }

  void AddTo(std::vector<pollfd>* polled) const;
  void Handle(const std::vector<pollfd>& polled);

 private:
  using Clock = std::chrono::steady_clock;

  // McpClientHost
  void Listed(const Json& tools, const Json& prompts, const Json& templates) override;
  void Result(uint64_t ask, const Json& result) override { caller_.TakeResult(ask, result); }
  void Failed(uint64_t ask, int64_t code, const std::string& message) override {
    caller_.TakeFailure(ask, code, message);
  }
  void Logged(const std::string& words) override { process_->Say(words); }
  void Asked(const std::string& method) override;
  void Progressed(uint64_t ask, double progress, const std::string& message) override {
    caller_.TakeProgress(ask, progress, message);
  }
  void Broken(const std::string& why) override { broken_ = why; }

  void Block(const Definitions& seen);
  void Stop();
  void ReadReceipt();
  void NoteDenied(const std::string& what, const std::string& fix);

  State& state_;
  const WrapRequest request_;
  const ToolPins pins_;
  Caller& caller_;
  call::ToolShelf shelf_, reads_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<gateway::McpClient> client_;
  bool ready_ = false;                    // its tools are known
  std::optional<std::string> broken_;     // to be ended, when nothing of it is on the stack
  std::deque<Clock::time_point> starts_;  // lately
  Clock::time_point ready_by_;
  bool has_prompts_ = false;
  bool has_resources_ = false;
  gateway::ForeignTools foreign_;
  gateway::ForeignPrompts prompts_;
  gateway::ForeignTemplates templates_;
  std::set<std::string> blocked_;              // until they are reviewed
  std::set<std::string> told_;                 // sentences that were said
  std::map<std::string, std::string> denied_;  // what, and the flag that would allow it
};

}  // namespace coffer::cli
