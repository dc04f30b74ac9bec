// SPDX-License-Identifier: Apache-2.0
//
// One function per route. Each turns a checked Exchange into one question to the service and its answer into a
// Response; none decides anything. They call `respond` exactly once.
#pragma once

#include <memory>

#include "gateway/http/exchange.h"

namespace coffer::gateway {

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

void GetSwitches(const std::shared_ptr<Exchange>& exchange, Respond respond);
void PutSwitch(const std::shared_ptr<Exchange>& exchange, Respond respond);
void DeleteSwitch(const std::shared_ptr<Exchange>& exchange, Respond respond);

void GetAudit(const std::shared_ptr<Exchange>& exchange, Respond respond);
void GetCheckpoint(const std::shared_ptr<Exchange>& exchange, Respond respond);

// ?limit=&cursor=
Answer<PageRequest> ReadPage(const Exchange& exchange);

// A Reply that formats the answer as `status`, or the refusal as a problem.
template <typename T>
Reply<T> Answering(Respond respond, int status, std::string (*format)(const T&)) {
  return [respond = std::move(respond), status, format](Answer<T> answer) {
    respond(answer.ok() ? JsonResponse(status, format(answer.value()))
                        : ProblemResponse(FromRefusal(answer.refusal())));
  };
}

}  // namespace coffer::gateway
