// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/fields.h"
#include "gateway/http/handlers.h"
#include "gateway/http/json_body.h"
#include "gateway/http/names.h"
#include "gateway/http/openapi.h"
#include "gateway/http/views.h"
#include "gateway/http/words.h"

namespace coffer::gateway {
namespace {

SwitchTarget TargetOf(const Exchange& exchange) {
  return {FindScope(exchange.Value("scope")).value_or(SwitchTarget::Scope::kTool),
          exchange.Value("name")};
}

}  // namespace

Refusal QueueFull() {
  return {.kind = RefusalKind::kUnavailable,
          .code = "busy",
          .message = "too many requests of this tenant or key are waiting already",
          .hint = "wait for answers before you ask for more",
          .retry_after = std::chrono::seconds(1)};
}

Response UnreadResponse() {
  Response response;
  response.status = 204;
  response.close = true;
  return response;
}

Answer<PageRequest> ReadPage(const Exchange& exchange) {
  PageRequest page;
  const auto refused = [](std::string message) {
    return Refusal{
        .kind = RefusalKind::kInvalid, .code = "query.invalid", .message = std::move(message)};
  };
  if (const std::string* limit = exchange.Query("limit"); limit != nullptr) {
    const std::optional<uint64_t> number = ReadNumber(*limit);
    if (!number.has_value() || *number < 1 || *number > 1000) {
      return refused("limit must be a number from 1 to 1000");
    }
    page.limit = *number;
  }
  if (const std::string* cursor = exchange.Query("cursor"); cursor != nullptr) {
    if (!IsCursor(*cursor)) {
      return refused("cursor is not one that was given out");
    }
    page.cursor = *cursor;
  }
  return page;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): all handlers have one signature
void GetHealth(const std::shared_ptr<Exchange>&, Respond respond) {
  respond(JsonResponse(200, R"({"status":"ok"})"));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): all handlers have one signature
void GetReady(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const Readiness readiness = exchange->api->service.GetReadiness();
  respond(JsonResponse(readiness.ready ? 200 : 503, FormatReadiness(readiness)));
}

// It is the same for all, also for strangers: compressed once.
// NOLINTNEXTLINE(performance-unnecessary-value-param): all handlers have one signature
void GetOpenApi(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  static const auto make = [](bool gzip) {
    Response response = JsonResponse(200, std::string(OpenApiDocument()));
    CompressBody(gzip, [] { return false; }, &response);
    return response;
  };
  static const Response plain = make(false);
  static const Response packed = make(true);
  respond(AcceptsGzip(exchange->head) ? packed : plain);
}

void GetMetrics(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetMetrics(
      exchange->who, Answering<std::string>(exchange, std::move(respond), [](std::string& text) {
        Response response;
        response.content_type = "text/plain; version=0.0.4; charset=utf-8";
        response.body = std::move(text);
        return response;
      }));
}

void PostSession(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const auto create = [exchange, respond](SessionRequest request) {
    exchange->api->service.CreateSession(
        exchange->who, std::move(request),
        Answering<SessionView>(exchange, respond, 201, FormatSession));
  };
  WithBody<SessionRequest>(exchange, respond, ParseSessionBody, create);
}

void GetSessions(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  Answer<PageRequest> page = ReadPage(*exchange);
  if (!page.ok()) {
    respond(ProblemResponse(FromRefusal(page.refusal())));
    return;
  }
  exchange->api->service.ListSessions(
      exchange->who, std::move(page.value()),
      Answering<Page<SessionView>>(exchange, std::move(respond), 200, FormatSessions));
}

void GetSession(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetSession(
      exchange->who, exchange->Value("session_id"),
      Answering<SessionView>(exchange, std::move(respond), 200, FormatSession));
}

void DeleteSession(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.EndSession(
      exchange->who, exchange->Value("session_id"),
      Answering<SessionView>(exchange, std::move(respond), 200, FormatSession));
}

void PostSessionExtend(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const auto extend = [exchange, respond](std::chrono::seconds lifetime) {
    exchange->api->service.ExtendSession(
        exchange->who, exchange->Value("session_id"), lifetime,
        Answering<SessionView>(exchange, respond, 200, FormatSession));
  };
  WithBody<std::chrono::seconds>(exchange, respond, ParseExtendBody, extend);
}

void GetTools(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.ListTools(
      exchange->who,
      Answering<std::vector<ToolView>>(exchange, std::move(respond), 200, FormatTools));
}

void GetTool(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetTool(
      exchange->who, exchange->Value("tool"),
      Answering<ToolView>(exchange, std::move(respond), 200, FormatTool));
}

void PostKey(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const auto create = [exchange, respond](KeyRequest request) {
    exchange->api->service.CreateKey(exchange->who, std::move(request),
                                     Answering<NewKey>(exchange, respond, 201, FormatNewKey));
  };
  WithBody<KeyRequest>(exchange, respond, ParseKeyBody, create);
}

void GetKeys(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.ListKeys(
      exchange->who,
      Answering<std::vector<KeyView>>(exchange, std::move(respond), 200, FormatKeys));
}

void DeleteKey(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  Revocation how;
  const auto asked = [&](const char* name) -> std::optional<bool> {
    const std::string* const text = exchange->Query(name);
    if (text != nullptr && *text != "true" && *text != "false") {
      respond(ProblemResponse(
          FromRefusal(Refusal{.kind = RefusalKind::kInvalid,
                              .code = "query.invalid",
                              .message = std::string(name) + " is true or false"})));
      return std::nullopt;
    }
    return text != nullptr && *text == "true";
  };
  const std::optional<bool> keep = asked("keep_running");
  if (!keep) {
    return;
  }
  const std::optional<bool> made = asked("with_keys");
  if (!made) {
    return;
  }
  how.calls = *keep ? RevokedCalls::kKeepRunning : RevokedCalls::kEnd;
  how.keys = *made ? RevokedKeys::kAndMade : RevokedKeys::kNamed;
  exchange->api->service.RevokeKey(
      exchange->who, exchange->Value("key_id"), how,
      Answering<KeyView>(exchange, std::move(respond), 200, FormatKey));
}

void GetAccess(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.ListAccess(
      exchange->who,
      Answering<std::vector<AccessView>>(exchange, std::move(respond), 200, FormatAccessList));
}

void PostAccess(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const auto decide = [exchange, respond](AccessGrant decision) {
    exchange->api->service.DecideAccess(
        exchange->who, exchange->Value("access_id"), std::move(decision),
        Answering<AccessView>(exchange, respond, 200, FormatAccess));
  };
  WithBody<AccessGrant>(exchange, respond, ParseAccessBody, decide);
}

void GetSwitches(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.ListSwitches(
      exchange->who,
      Answering<std::vector<SwitchView>>(exchange, std::move(respond), 200, FormatSwitches));
}

void PutSwitch(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const auto set = [exchange, respond](const std::string& reason) {
    exchange->api->service.SetSwitch(exchange->who, TargetOf(*exchange), reason,
                                     Answering<SwitchView>(exchange, respond, 200, FormatSwitch));
  };
  WithBody<std::string>(exchange, respond, ParseSwitchBody, set);
}

void DeleteSwitch(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.ClearSwitch(exchange->who, TargetOf(*exchange),
                                     Answering<Nothing>(exchange, std::move(respond), [](Nothing&) {
                                       Response response;
                                       response.status = 204;
                                       return response;
                                     }));
}

}  // namespace coffer::gateway
