// SPDX-License-Identifier: Apache-2.0
//
// The client's side of MCP, for a server that we wrap: messages of the server come in, requests go out. Not thread-safe.
//
// The server is hostile. Whatever it sends ends up as one of the calls of McpClientHost or is counted as a stray; it can ask for
// nothing, so each of its own requests (sampling, roots, elicitation) is refused with an error that says so.
// It speaks the legacy era, which every server of today understands.
#pragma once

#include <cstdint>
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
  // All pages of tools/list, after the beginning and whenever the server says that they have changed.
  virtual void Listed(const Json& tools) = 0;
  virtual void Result(uint64_t ask, const Json& result) = 0;
  virtual void Failed(uint64_t ask, const std::string& message) = 0;
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
  // Nothing comes back for it any more.
  void Cancel(uint64_t ask);

  // Methods that the server asked us for, each refused.
  const std::set<std::string>& refused() const { return refused_; }

 private:
  enum class Asked : uint8_t { kInitialize, kList, kCall };
  uint64_t Ask(Asked what, const std::string& method, const Json& params);
  void ReceiveAnswer(const Json& message);
  void ReceiveList(const Json& result);
  void ReceiveNotification(const std::string& method, const Json& message);
  void List(const std::string& cursor);
  void Stray(const std::string& what);

  McpClientHost& host_;
  const Send send_;
  std::map<uint64_t, Asked> asked_;
  uint64_t next_ = 1;
  std::string tools_;  // JSON of the pages that have come, without brackets
  size_t pages_ = 0;
  bool changed_ = false;  // while a listing was under way
  bool listing_ = false;
  bool broken_ = false;
  uint64_t strays_ = 0;    // since the last answer
  uint64_t progress_ = 0;  // the same
  std::set<std::string> refused_;
};

}  // namespace coffer::gateway
