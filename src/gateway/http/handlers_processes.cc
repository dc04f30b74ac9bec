// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/fields.h"
#include "gateway/http/handlers.h"
#include "gateway/http/json_body.h"
#include "gateway/http/names.h"
#include "gateway/http/views.h"

namespace coffer::gateway {
namespace {

constexpr uint64_t kMostFollowed = 30;         // seconds
constexpr uint64_t kMostLogBytes = 1'048'576;  // in one answer

ProcessName NameOf(const Exchange& exchange) {
  return {exchange.Value("session_id"), exchange.Value("process_id")};
}

// A number of the query, from 0 or 1 to `most`; `fallback` if it is not there.
Answer<uint64_t> ReadCount(const Exchange& exchange, std::string_view name, uint64_t fallback,
                           uint64_t most) {
  const std::string* const text = exchange.Query(name);
  if (text == nullptr) {
    return fallback;
  }
  const std::optional<uint64_t> number = ReadNumber(*text);
  if (!number || *number > most) {
    return Refusal{
        .kind = RefusalKind::kInvalid,
        .code = "query.invalid",
        .message = std::string(name) + " is a number of at most " + std::to_string(most)};
  }
  return *number;
}

}  // namespace

// The same ladder as for a call: a refusal is answered like that of a call.
void PostProcess(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const auto submit = [exchange, respond](CallRequest request) {
    const std::string session = exchange->Value("session_id");
    request.session_id = session;
    request.traceparent = ReadTraceparent(exchange->head);
    request.background = true;
    request.wait = false;
    ProcessView begun;
    begun.session_id = session;
    begun.tool = request.tool;
    begun.ports = request.ports;
    exchange->api->service.Submit(
        exchange->who, std::move(request),
        Answering<CallView>(exchange, respond, [begun](CallView& call) {
          if (call.state == CallProgress::kFinished) {
            Response response = JsonResponse(200, FormatCallResult(call));
            response.headers.push_back({"Location", "/v1/calls/" + call.identity.call_id});
            if (call.retry_after) {
              response.headers.push_back({"Retry-After", std::to_string(*call.retry_after)});
            }
            return response;
          }
          ProcessView view = begun;
          view.process_id = call.identity.call_id;
          Response response = JsonResponse(201, FormatProcess(view));
          response.headers.push_back({"Location", "/v1/sessions/" + begun.session_id +
                                                      "/processes/" + call.identity.call_id});
          return response;
        }));
  };
  WithBody<CallRequest>(exchange, respond, ParseProcessBody, submit);
}

void GetProcesses(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.ListProcesses(
      exchange->who, exchange->Value("session_id"),
      Answering<std::vector<ProcessView>>(exchange, std::move(respond), 200, FormatProcesses));
}

void GetProcess(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetProcess(
      exchange->who, NameOf(*exchange),
      Answering<ProcessView>(exchange, std::move(respond), 200, FormatProcess));
}

void GetProcessLog(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const Answer<uint64_t> offset = ReadCount(*exchange, "offset", 0, INT64_MAX);
  const Answer<uint64_t> limit = ReadCount(*exchange, "limit", 65536, kMostLogBytes);
  const Answer<uint64_t> follow = ReadCount(*exchange, "follow", 0, kMostFollowed);
  for (const Answer<uint64_t>* number : {&offset, &limit, &follow}) {
    if (!number->ok()) {
      respond(ProblemResponse(FromRefusal(number->refusal())));
      return;
    }
  }
  exchange->api->service.ReadProcessLog(
      exchange->who, NameOf(*exchange),
      {offset.value(), limit.value(), std::chrono::seconds(follow.value())},
      Answering<ProcessLogView>(exchange, std::move(respond), 200, FormatProcessLog));
}

void PostProcessSignal(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  const auto send = [exchange, respond](int signal) {
    exchange->api->service.SignalProcess(
        exchange->who, NameOf(*exchange), signal,
        Answering<ProcessView>(exchange, respond, 202, FormatProcess));
  };
  WithBody<int>(exchange, respond, ParseSignalBody, send);
}

void DeleteProcess(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.SignalProcess(
      exchange->who, NameOf(*exchange), std::nullopt,
      Answering<ProcessView>(exchange, std::move(respond), 202, FormatProcess));
}

}  // namespace coffer::gateway
