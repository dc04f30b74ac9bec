// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gateway/http/fields.h"
#include "gateway/http/handlers.h"
#include "gateway/http/json_body.h"
#include "gateway/http/sse.h"
#include "gateway/http/views.h"

namespace coffer::gateway {
namespace {

Response CallResponse(CallView& call, bool wait) {
  Response response;
  if (call.state == CallProgress::kFinished) {
    response = JsonResponse(200, FormatCallResult(call));
  } else {
    response = JsonResponse(202, FormatCallAccepted(call));
    if (!wait && call.state != CallProgress::kGated) {
      response.headers.push_back({"Preference-Applied", "respond-async"});
    }
  }
  response.headers.push_back({"Location", "/v1/calls/" + call.identity.call_id});
  if (call.retry_after) {
    response.headers.push_back({"Retry-After", std::to_string(*call.retry_after)});
  }
  if (call.replayed) {
    response.headers.push_back({"Idempotency-Replayed", "true"});
  }
  return response;
}

}  // namespace

void PostCall(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  Answer<std::optional<std::string>> key = ReadIdempotencyKey(exchange->head);
  if (!key.ok()) {
    respond(ProblemResponse(FromRefusal(key.refusal())));
    return;
  }
  const auto submit = [exchange, respond, key = std::move(key.value())](CallRequest request) {
    request.idempotency_key = key;
    request.traceparent = ReadTraceparent(exchange->head);
    const bool wait = !PrefersAsync(exchange->head);
    request.wait = wait;
    exchange->api->service.Submit(exchange->who, std::move(request),
                                  Answering<CallView>(exchange, respond, [wait](CallView& call) {
                                    return CallResponse(call, wait);
                                  }));
  };
  WithBody<CallRequest>(exchange, respond, ParseCallBody, submit);
}

void GetCall(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetCall(
      exchange->who, exchange->Value("call_id"),
      Answering<CallView>(exchange, std::move(respond),
                          [](CallView& call) { return JsonResponse(200, FormatCall(call)); }));
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
  exchange->api->service.CancelCall(
      exchange->who, exchange->Value("call_id"),
      Answering<CallView>(exchange, std::move(respond),
                          [](CallView& call) { return JsonResponse(202, FormatCall(call)); }));
}

void GetCallReceipt(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetReceipt(
      exchange->who, exchange->Value("call_id"),
      Answering<std::string>(exchange, std::move(respond), 200, FormatWhole));
}

}  // namespace coffer::gateway
