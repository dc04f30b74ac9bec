// SPDX-License-Identifier: Apache-2.0
//
// An MCP server, as far as it is protocol: messages come in, answers go out, and a host does the work.
//
// It speaks both eras of MCP at the same time. From 2026-07-28 on ("modern") each request says in
// _meta which version it is written for and needs nothing that went before. Before that ("legacy")
// a client begins with `initialize`, which settles the version: for the process on stdio, for the
// session over HTTP. A request belongs to the modern era if its _meta names a version, and to the
// legacy one otherwise. `coffer mcp` has one server for its client; over HTTP each request has its
// own (gateway/http/mcp_post.h). Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_pieces.h"
#include "gateway/mcp/message.h"

namespace coffer::gateway {

// Names in _meta.
inline constexpr const char* kMcpVersionKey = "io.modelcontextprotocol/protocolVersion";

inline constexpr const char* kMcpModernVersion = "2026-07-28";
bool IsMcpLegacyVersion(std::string_view version);
// What a version that is not spoken is answered with.
McpError McpVersionError(const Json& requested);
// Of a request whose _meta names a version: what is wrong with that, or nothing.
std::optional<McpError> CheckMcpModern(const McpMessage& message);
// params._meta[name], or nothing.
const Json* FindMcpMeta(const McpMessage& message, const char* name);

struct McpCall {
  McpId id;
  std::string tool;
  std::string args_json;
  std::string traceparent;  // empty: none
  // Another request that a host queues among its calls; then args_json has its parameters.
  std::string method = "tools/call";
};

// Any other request that a host may know.
struct McpRequest {
  McpId id;
  std::string method;
  std::shared_ptr<const Json> params;
};

class McpServer;

// Does the work. It answers each request by McpServer::Answer, at once or later.
class McpHost {
 public:
  virtual ~McpHost() = default;
  // An object with one member for each kind of thing that the host offers.
  virtual Json Capabilities() const;  // tools, unless it says otherwise
  // {"tools": [...]}: the definitions of the tools that the client may call (tool_json.h).
  virtual void ListTools(const McpId& id) = 0;
  virtual void Begin(const McpCall& call) = 0;
  // The client does not want the answer any more; the host answers nevertheless, when the call has ended.
  virtual void Cancel(const McpId& id, const std::string& reason) = 0;
  // A method that the server itself does not know (resources/list). False: the host does not know it either.
  virtual bool HandleOther(const McpRequest& /*request*/) { return false; }

 protected:
  // Whom the answers are for; outlives what the host does for it.
  McpServer& server() const { return *server_; }

 private:
  friend class McpServer;
  McpServer* server_ = nullptr;
};

// How the result of one request is written. A value: it may be used on another thread than the server's.
struct McpResultForm {
  McpId id;
  bool modern = false;
  bool cacheable = false;  // lists and contents say for how long they are good
  std::string Line(const Json& result) const;
  // The same message, without the end of its line, for a result of which `members` is the text without its braces.
  JsonPieces Message(JsonPieces members) const;
};

// What goes to the client: one line.
struct McpOutgoing {
  std::string line;
  std::shared_ptr<JsonPieces> text;   // instead of the line, and without its end: AnswerText
  bool answer = true;                 // false: a notification
  std::optional<McpErrorCode> error;  // of an answer that is one
};

class McpServer {
 public:
  using Send = std::function<void(McpOutgoing out)>;
  McpServer(McpHost& host, Send send);
  ~McpServer();
  McpServer(const McpServer&) = delete;
  McpServer& operator=(const McpServer&) = delete;

  void Receive(std::string_view line) { Receive(ReadMcpMessage(line)); }
  void Receive(const McpReading& reading);
  // As after an `initialize` that settled this version.
  void Resume(std::string legacy_version) { legacy_version_ = std::move(legacy_version); }

  // The result of a request, without what the era adds to it. Nothing is sent for one that was cancelled.
  void Answer(const McpId& id, const Json& result);
  // The members of a result, which become a line at once.
  void Answer(const McpId& id, JsonPieces members);
  void Answer(const McpId& id, McpError error);
  // The same in two steps: the line is made elsewhere, or its text is made while it is sent.
  McpResultForm FormOf(const McpId& id) const;
  void AnswerLine(const McpId& id, std::string line);
  void AnswerText(const McpId& id, JsonPieces text);
  // How far a call is, if its client has asked for that; `progress` must grow.
  void Progress(const McpId& id, double progress, const std::string& message);
  // As notifications/cancelled does.
  void Cancel(const McpId& id, const std::string& reason);

  bool Waits(const McpId& id) const { return pending_.contains(id); }

 private:
  struct Pending {
    bool modern = false;
    bool cacheable = false;
    std::string progress_token;  // JSON text; empty: none
    bool cancelled = false;
  };
  std::optional<McpError> CheckEra(const McpMessage& message, bool modern) const;
  void HandleRequest(const McpMessage& message);
  void HandleNotification(const McpMessage& message);
  void Initialize(const McpMessage& message);
  void Discover(const McpMessage& message);
  void CallTool(const McpMessage& message, bool modern);
  void SendAnswer(const McpId& id, McpOutgoing out);
  void SendResult(const McpResultForm& form, const Json& result);
  void SendError(const McpId& id, const McpError& error);

  McpHost& host_;
  const Send send_;
  std::string legacy_version_;        // after `initialize`
  std::map<McpId, Pending> pending_;  // requests without an answer
};

}  // namespace coffer::gateway
