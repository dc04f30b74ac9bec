// SPDX-License-Identifier: Apache-2.0
//
// One function per route. Each turns a checked Exchange into one question to the service and its answer into a
// Response; none decides anything. They call `respond` exactly once.
#pragma once

#include <memory>

#include "gateway/http/exchange.h"
#include "gateway/http/gzip.h"
#include "gateway/http/text_stream.h"

namespace coffer::gateway {

// What is smaller costs less than its counting.
inline constexpr size_t kCountedBytes = 16 << 10;

void GetHealth(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetReady(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetOpenApi(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetMetrics(const std::shared_ptr<Exchange>& exchange, Respond respond);

void PostCall(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetCall(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetCallEvents(const std::shared_ptr<Exchange>& exchange, Respond respond);
void PostCallCancel(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetCallReceipt(const std::shared_ptr<Exchange>& exchange, Respond respond);

void PostSession(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetSessions(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetSession(const std::shared_ptr<Exchange>& exchange, Respond respond);
void DeleteSession(const std::shared_ptr<Exchange>& exchange, Respond respond);

void PostSessionExtend(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetCalls(const std::shared_ptr<Exchange>& exchange, Respond respond);

void PostProcess(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetProcesses(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetProcess(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetProcessLog(const std::shared_ptr<Exchange>& exchange, Respond respond);
void PostProcessSignal(const std::shared_ptr<Exchange>& exchange, Respond respond);
void DeleteProcess(const std::shared_ptr<Exchange>& exchange, Respond respond);

// Of a session's workspace or of a call, by which id the path has.
void GetFiles(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetFile(const std::shared_ptr<Exchange>& exchange, Respond respond);
void PutFile(const std::shared_ptr<Exchange>& exchange, Respond respond);
void DeleteFile(const std::shared_ptr<Exchange>& exchange, Respond respond);

void GetTools(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetTool(const std::shared_ptr<Exchange>& exchange, Respond respond);

void PostKey(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetKeys(const std::shared_ptr<Exchange>& exchange, Respond respond);
void DeleteKey(const std::shared_ptr<Exchange>& exchange, Respond respond);

void GetAccess(const std::shared_ptr<Exchange>& exchange, Respond respond);
void PostAccess(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetSwitches(const std::shared_ptr<Exchange>& exchange, Respond respond);
void PutSwitch(const std::shared_ptr<Exchange>& exchange, Respond respond);
void DeleteSwitch(const std::shared_ptr<Exchange>& exchange, Respond respond);

// MCP over HTTP: one message, the end of a session, and where tokens come from (RFC 9728).
void PostMcp(const std::shared_ptr<Exchange>& exchange, Respond respond);
void DeleteMcp(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetProtectedResource(const std::shared_ptr<Exchange>& exchange, Respond respond);

void GetAudit(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetCallTranscript(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetAuditObject(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetCheckpoint(const std::shared_ptr<Exchange>& exchange, Respond respond);

// ?limit=&cursor=
Answer<PageRequest> ReadPage(const Exchange& exchange);

// There is no place for the work of a request.
Refusal QueueFull();

// A body of JSON that is larger is parsed on another thread: it would hold up the loop.
inline constexpr size_t kParsedAtOnce = 16 << 10;

// Parses the body and goes on with what it says, on the loop's thread. What is wrong is answered.
template <typename T>
void WithBody(const std::shared_ptr<Exchange>& exchange, const Respond& respond,
              Answer<T> (*parse)(std::string_view text, const HttpLimits& limits),
              std::function<void(T)> next) {
  const auto go_on = [exchange, respond, next = std::move(next)](Answer<T> said) {
    exchange->body = {};  // the work can take long, and what it needs is in the value now
    if (said.ok()) {
      next(std::move(said.value()));
    } else {
      respond(ProblemResponse(FromRefusal(said.refusal())));
    }
  };
  if (exchange->body.size() < kParsedAtOnce) {
    go_on(parse(exchange->body, exchange->api->config.limits));
    return;
  }
  const bool taken = exchange->api->service.Offload(*exchange->asker, [exchange, parse, go_on] {
    const auto said =
        std::make_shared<Answer<T>>(parse(exchange->body, exchange->api->config.limits));
    exchange->api->loop.Post([go_on, said] { go_on(std::move(*said)); });
  });
  if (!taken) {
    respond(ProblemResponse(FromRefusal(QueueFull())));
  }
}

// For a client that is gone: its answer would not be read, so nothing is formatted.
Response UnreadResponse();

// A Reply that makes a Response of the answer, on the thread that has the answer, and counts it as its tenant's memory.
template <typename T>
Reply<T> Answering(const std::shared_ptr<Exchange>& exchange, Respond respond,
                   std::function<Response(T&)> make) {
  return Reply<T>::Prepared(
      [api = exchange->api, asker = exchange->asker, respond = std::move(respond),
       make = std::move(make),
       gzip = AcceptsGzip(exchange->head)](Answer<T> answer) -> std::function<void()> {
        auto response = std::make_shared<Response>();
        try {
          *response = asker->gone   ? UnreadResponse()
                      : answer.ok() ? make(answer.value())
                                    : ProblemResponse(FromRefusal(answer.refusal()));
          PrepareText(api, asker, gzip, response.get());
          CompressBody(gzip, [&asker] { return asker->gone.load(); }, response.get());
        } catch (const std::exception&) {
          *response = ProblemResponse(
              MakeProblem(500, "internal", "something went wrong inside Cofferdam"));
        }
        if (const size_t size = BodySize(*response); size >= kCountedBytes) {
          response->room = api->service.HoldAnyway(*asker, size);
        }
        return [respond, response] { respond(std::move(*response)); };
      },
      exchange->asker);
}

// The same with a text of JSON and a status.
template <typename T>
Reply<T> Answering(const std::shared_ptr<Exchange>& exchange, Respond respond, int status,
                   std::string (*format)(const T&)) {
  return Answering<T>(exchange, std::move(respond),
                      [status, format](T& value) { return JsonResponse(status, format(value)); });
}

// The same with a text that is made while it is sent.
template <typename T>
Reply<T> Answering(const std::shared_ptr<Exchange>& exchange, Respond respond, int status,
                   JsonPieces (*format)(T&)) {
  return Answering<T>(exchange, std::move(respond),
                      [status, format](T& value) { return JsonResponse(status, format(value)); });
}

}  // namespace coffer::gateway
