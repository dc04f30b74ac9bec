// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>

#include "gateway/http/handlers.h"
#include "gateway/http/mcp_head.h"
#include "gateway/http/mcp_post.h"
#include "gateway/http/names.h"
#include "gateway/http/protected_resource.h"

namespace coffer::gateway {

void PostMcp(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  auto post = std::make_shared<McpPost>(*exchange, respond);
  exchange->work = post;
  if (exchange->body.size() < kParsedAtOnce) {
    post->Take(ReadMcpMessage(exchange->body));
    return;
  }
  const std::weak_ptr<McpPost> weak = post;
  const bool taken = exchange->api->service.Offload(*exchange->asker, [exchange, weak] {
    auto reading = std::make_shared<McpReading>(ReadMcpMessage(exchange->body));
    exchange->api->loop.Post([exchange, weak, reading] {
      exchange->body = {};  // a call can take long, and its arguments are in the message now
      if (const auto waiting = weak.lock()) {
        waiting->Take(std::move(*reading));
      }
    });
  });
  if (!taken) {
    respond(ProblemResponse(FromRefusal(QueueFull())));
  }
}

// Ends the session of a legacy client.
void DeleteMcp(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const Head& head = exchange->head;
  const std::string* const session = head.Find("Mcp-Session-Id");
  if (const std::string* version = head.Find("MCP-Protocol-Version");
      version != nullptr && *version == kMcpModernVersion) {
    Problem problem = MakeProblem(405, "route.method", "this version of MCP has no sessions");
    problem.allow = "POST";
    respond(ProblemResponse(problem));
    return;
  }
  if (session != nullptr && head.Count("Mcp-Session-Id") != 1) {
    respond(
        ProblemResponse(MakeProblem(400, "mcp.session", "Mcp-Session-Id is given more than once")));
    return;
  }
  if (session == nullptr) {
    respond(ProblemResponse(MakeProblem(400, "mcp.session", "Mcp-Session-Id is missing",
                                        "it is a field of the answer to initialize")));
    return;
  }
  if (!IsId(*session)) {
    respond(ProblemResponse(MakeProblem(404, "session.unknown", "there is no such session")));
    return;
  }
  exchange->api->service.EndSession(
      exchange->who, *session,
      Answering<SessionView>(exchange, std::move(respond), [](SessionView&) {
        Response response;
        response.status = 204;
        return response;
      }));
}

void GetProtectedResource(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  if (exchange->api->config.jwt == nullptr) {
    respond(ProblemResponse(MakeProblem(404, "route.unknown",
                                        "this server takes no tokens of an identity provider",
                                        "send an API key: Authorization: Bearer KEY")));
    return;
  }
  respond(JsonResponse(200, FormatProtectedResource(*exchange)));
}

}  // namespace coffer::gateway
