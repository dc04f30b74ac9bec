// SPDX-License-Identifier: Apache-2.0
//
// The client's side of MCP, for a server that we wrap: messages of the server come in, requests go
// out. Not thread-safe.
//
// The server is hostile. Whatever it sends ends up as one of the calls of McpClientHost or is
// counted as a stray; it can ask for nothing, so each of its own requests (sampling, roots,
// elicitation) is refused with an error that says so. It speaks the legacy era, which every server
// of today understands. Tools, prompts and templates are listed when it begins, and again when it
// says that they have changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"

namespace coffer::gateway {

class McpClientHost {
 public:
  virtual ~McpClientHost() = default;
  // All pages of each list, after the beginning and whenever the server says that one has changed.
  // A list that the server does not offer is empty.
  virtual void Listed(const Json& tools, const Json& prompts, const Json& templates) = 0;
  virtual void Result(uint64_t ask, const Json& result) = 0;
  // `code` is that of its error, or 0.
  virtual void Failed(uint64_t ask, int64_t code, const std::string& message) = 0;
  // What it said to its log (notifications/message): hostile words, as long as a message may be.
  virtual void Logged(const std::string& words) = 0;
  // It asked its client for this, and was refused. Once for each method.
  virtual void Asked(const std::string& method) = 0;
  virtual void Progressed(uint64_t ask, double progress, const std::string& message) = 0;
  // The conversation cannot go on: the server must be ended.
  virtual void Broken(const std::string& why) = 0;
};

class McpClient {
 public:
  using Send = std::function<void(std::string line)>;
  McpClient(McpClientHost& host, Send send) : host_(host), send_(std::move(send)) {}

  void Begin();
  void Receive(std::string_view line);
  // The number by which the host is told of what comes back.
  uint64_t Call(const std::string& tool, const std::string& args_json);
  // The same for another request, of which the result comes back as it is.
  uint64_t Request(const std::string& method, const std::string& params_json);
  // Nothing comes back for it any more.
  void Cancel(uint64_t ask);

  // Methods that the server asked us for, each refused.
  const std::set<std::string>& refused() const { return refused_; }
  // What it said it has, when it began.
  bool has_prompts() const { return has_prompts_; }
  bool has_resources() const { return has_resources_; }

 private:
  enum class Kind : uint8_t { kInitialize, kTools, kPrompts, kTemplates, kCall };
  struct List {
    const char* method;
    const char* member;     // of the result
    bool optional = false;  // one that refuses has none
    std::string items{};    // JSON of the pages that have come, without brackets
    size_t pages = 0;
    size_t count = 0;
    bool under_way = false;
    bool changed = false;  // while it was under way
  };
  uint64_t Ask(Kind what, const std::string& method, const Json& params);
  void ReceiveAnswer(const Json& message);
  void ReceiveStart(const Json& result);
  void ReceiveList(Kind kind, const Json& result);
  void ReceiveRequest(const std::string& method, const Json& id);
  void ReceiveNotification(const std::string& method, const Json& message);
  List& ListOf(Kind kind);
  void BeginList(Kind kind, const std::string& cursor);
  void Changed(Kind kind);
  void EndList(Kind kind);
  void Stray(const std::string& what);
  void Break(const std::string& why);

  McpClientHost& host_;
  const Send send_;
  std::map<uint64_t, Kind> asked_;
  uint64_t next_ = 1;
  List tools_{"tools/list", "tools"};
  List prompts_{"prompts/list", "prompts", true};
  List templates_{"resources/templates/list", "resourceTemplates", true};
  bool has_prompts_ = false;
  bool has_resources_ = false;
  bool broken_ = false;
  using Clock = std::chrono::steady_clock;
  uint64_t weight_ = 1;  // of the message that is being received
  uint64_t strays_ = 0;  // since the last answer; fewer with time
  Clock::time_point strayed_ = Clock::now();
  uint64_t progress_ = 0;                  // since the last answer
  std::deque<Clock::time_point> changes_;  // of its lists, lately
  std::set<std::string> refused_;
};

}  // namespace coffer::gateway
