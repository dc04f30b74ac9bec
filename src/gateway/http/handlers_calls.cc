// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gateway/http/fields.h"
#include "gateway/http/handlers.h"
#include "gateway/http/json_body.h"
#include "gateway/http/sse.h"
#include "gateway/http/views.h"

namespace coffer::gateway {
namespace {

Response CallResponse(const CallView& call, bool wait) {
  Response response;
  if (call.state == CallState::kFinished) {
    response = JsonResponse(200, FormatCallResult(call));
  } else {
    response = JsonResponse(202, FormatCallAccepted(call));
    if (!wait && call.state != CallState::kGated) {
      response.headers.push_back({"Preference-Applied", "respond-async"});
    }
  }
  response.headers.push_back({"Location", "/v1/calls/" + call.call_id});
  if (call.replayed) {
    response.headers.push_back({"Idempotency-Replayed", "true"});
  }
  return response;
}

std::string SameText(const std::string& text) { return text; }

}  // namespace

void PostCall(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  Answer<std::optional<std::string>> key = ReadIdempotencyKey(exchange->head);
  if (!key.ok()) {
    respond(ProblemResponse(FromRefusal(key.refusal())));
    return;
  }
  Answer<CallRequest> request = ParseCallBody(exchange->body, exchange->api->config.limits);
  if (!request.ok()) {
    respond(ProblemResponse(FromRefusal(request.refusal())));
    return;
  }
  exchange->body = {};  // a call can take long, and its arguments are in the request now
  request->idempotency_key = std::move(key.value());
  request->traceparent = ReadTraceparent(exchange->head);
  request->wait = !PrefersAsync(exchange->head);
  const bool wait = request->wait;
  exchange->api->service.Submit(exchange->who, std::move(request.value()),
                                [respond = std::move(respond), wait](Answer<CallView> answer) {
                                  respond(answer.ok()
                                              ? CallResponse(answer.value(), wait)
                                              : ProblemResponse(FromRefusal(answer.refusal())));
                                });
}

void GetCall(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetCall(exchange->who, exchange->Value("call_id"),
                                 Answering<CallView>(std::move(respond), 200, FormatCall));
}

void GetCallEvents(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  Answer<uint64_t> after = ReadLastEventId(exchange->head);
  if (!after.ok()) {
    respond(ProblemResponse(FromRefusal(after.refusal())));
    return;
  }
  RespondWithEvents(exchange, after.value(), std::move(respond));
}

void PostCallCancel(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.CancelCall(exchange->who, exchange->Value("call_id"),
                                    Answering<CallView>(std::move(respond), 202, FormatCall));
}

void GetCallReceipt(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetReceipt(exchange->who, exchange->Value("call_id"),
                                    Answering<std::string>(std::move(respond), 200, SameText));
}

}  // namespace coffer::gateway
