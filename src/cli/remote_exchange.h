// SPDX-License-Identifier: Apache-2.0
//
// One request to an MCP server at a URL (Streamable HTTP), and what comes back for it: one JSON
// text, a stream of events, or a reason why there is neither.
//
// The server is hostile: one message has at most kMaxMcpLine bytes, redirects are not followed, and
// only the two content types that MCP has are read. Not thread-safe; the owner polls the
// connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/proxied_connection.h"
#include "gateway/mcp/event_reader.h"
#include "gateway/mcp/message.h"

namespace coffer::cli {

// The code of an error of ours: there is no answer. A server that uses it, too, is quoted without
// its name; nothing else follows.
inline constexpr int kNoRemoteAnswer = -32098;

// A message for the server.
struct RemoteMessage {
  std::string method;  // of JSON-RPC; empty: an answer of ours
  gateway::McpId id;   // empty: nothing is answered
  std::string body;
  std::chrono::milliseconds pause{0};  // before its stream was taken up again; zero: it never was
};

class RemoteExchange : private ProxiedConnection::Reader {
 public:
  enum class Kind : uint8_t {
    kPost,    // a message
    kResume,  // the rest of the stream of a message
    kListen,  // what the server has to say by itself
    kDelete,  // the end of the session
  };
  // `take` gets each text that came: hostile, and perhaps no JSON.
  RemoteExchange(Kind kind, RemoteMessage message,
                 std::function<void(RemoteExchange&, const std::string&)> take);

  void Begin(std::unique_ptr<ProxiedConnection> connection, std::string head_and_body);
  Kind kind() const { return kind_; }
  const RemoteMessage& message() const { return message_; }
  ProxiedConnection* connection() { return connection_.get(); }

  bool done() const { return done_; }
  // After it is done; null if it cannot be used again.
  std::unique_ptr<ProxiedConnection> TakeConnection();
  // Why it failed, in words; empty: it did not.
  const std::string& problem() const { return problem_; }
  int status() const { return status_; }  // 0: none came
  const std::string& session() const { return session_; }
  const gateway::EventReader& events() const { return events_; }

  // The message has its answer: what a stream has after it is not waited for.
  void SetAnswered();
  bool answered() const { return answered_; }
  // A text has come.
  bool heard() const { return heard_; }
  // Words of the server beside a status that is an error.
  void Explain(const std::string& words) { problem_ += ": " + words; }
  // Gives it up.
  void Cancel(const std::string& why);

 private:
  enum class Shape : uint8_t { kIgnored, kJson, kEvents, kRefusal };
  void TakeHead(const net::HttpResponseHead& head) override;
  void TakeBody(std::string_view piece) override;
  void TakeEnd(const std::string& problem) override;
  void ReadStatus(const net::HttpResponseHead& head);
  void ReadRefusal();

  const Kind kind_;
  const RemoteMessage message_;
  const std::function<void(RemoteExchange&, const std::string&)> take_;
  std::unique_ptr<ProxiedConnection> connection_;
  Shape shape_ = Shape::kIgnored;
  gateway::EventReader events_{gateway::kMaxMcpLine};
  std::string text_;
  int status_ = 0;
  std::string session_;
  std::string problem_;
  bool answered_ = false;
  bool heard_ = false;
  bool done_ = false;
};

}  // namespace coffer::cli
