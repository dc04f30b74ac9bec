// SPDX-License-Identifier: Apache-2.0
//
// One POST to /mcp: one message of MCP, and its answer as one JSON object or as a stream of server-sent events.
//
// Modern requests stand for themselves; `?session=ID` names a session of POST /v1/sessions in which
// they work. A legacy client begins with `initialize`, which makes a session; its id is the
// Mcp-Session-Id, so that a session of MCP is bound to tenant and agent, expires, is seen and ended
// like every other, and outlives a restart of the daemon. A request in a session moves its end.
// When a modern client leaves, its call is cancelled; a legacy one has to say so
// (notifications/cancelled). Nothing of MCP is kept in memory between requests but the calls under
// way.
//
// It lives in Exchange::work, until the answer is sent. Used on the loop's thread.
#pragma once

#include <memory>
#include <string>

#include "gateway/http/exchange.h"
#include "gateway/http/mcp_event_stream.h"
#include "gateway/http/mcp_head.h"
#include "gateway/mcp/server.h"

namespace coffer::gateway {

class McpPost : public std::enable_shared_from_this<McpPost> {
 public:
  // Not the exchange itself: that holds this.
  McpPost(const Exchange& exchange, Respond respond);
  ~McpPost();

  void Take(McpReading reading);

 private:
  void TakeModern();
  void TakeInitialize();
  void TakeLegacy();
  // Goes on when the session is there and open; what is wrong is answered.
  void CheckSession(std::function<void()> next);
  void CancelOther();
  void Run();
  void MakeServer();
  void Send(McpOutgoing out);
  // An answer that is made while it is sent.
  void SendText(JsonPieces text);
  // The client has left, or another request has cancelled this one.
  void Drop(bool left);

  void RespondError(int status, const McpError& error);
  void RespondRefusal(const Refusal& refusal);
  void RespondAccepted();
  void Finish(Response response);

  const std::shared_ptr<const Api> api_;
  const Head head_;
  const Identity who_;
  const std::shared_ptr<Asker> asker_;
  Respond respond_;  // nothing once it was invoked
  std::string session_id_;
  bool minted_ = false;  // the session is one of an `initialize`
  McpMessage message_;
  McpEra era_;
  std::shared_ptr<McpHost> host_;
  std::unique_ptr<McpServer> server_;
  std::shared_ptr<McpEventStream> stream_;
  McpOutgoing initialized_;  // what `initialize` is answered, when there is a session
};

}  // namespace coffer::gateway
