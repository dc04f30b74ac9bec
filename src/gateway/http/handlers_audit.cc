// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/handlers.h"
#include "gateway/http/names.h"
#include "gateway/http/views.h"
#include "store/key.h"

namespace coffer::gateway {
namespace {

Answer<AuditQuery> ReadAuditQuery(const Exchange& exchange) {
  AuditQuery query;
  Answer<PageRequest> page = ReadPage(exchange);
  if (!page.ok()) {
    return page.refusal();
  }
  query.page = std::move(page.value());
  const std::pair<const char*, std::string*> names[] = {
      {"tenant", &query.tenant},      {"tool", &query.tool},         {"agent", &query.agent},
      {"session", &query.session_id}, {"trace", &query.trace_id},    {"outcome", &query.outcome},
      {"class", &query.error_class},  {"approval", &query.approval}, {"since", &query.since},
      {"until", &query.until}};
  for (const auto& [name, field] : names) {
    const std::string* given = exchange.Query(name);
    if (given == nullptr) {
      continue;
    }
    if (!IsName(*given) && !(field == &query.agent && store::IsAgentName(*given))) {
      return Refusal{.kind = RefusalKind::kInvalid,
                     .code = "query.invalid",
                     .message = std::string(name) + " is not a name, id or time"};
    }
    *field = *given;
  }
  if (const std::string* denied = exchange.Query("denied"); denied != nullptr) {
    if (*denied != "true" && *denied != "false") {
      return Refusal{.kind = RefusalKind::kInvalid,
                     .code = "query.invalid",
                     .message = "denied is true or false"};
    }
    query.denied = *denied == "true";
  }
  return query;
}

}  // namespace

void GetAudit(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  Answer<AuditQuery> query = ReadAuditQuery(*exchange);
  if (!query.ok()) {
    respond(ProblemResponse(FromRefusal(query.refusal())));
    return;
  }
  exchange->api->service.ListAudit(
      exchange->who, std::move(query.value()),
      Answering<Page<AuditView>>(exchange, std::move(respond), 200, FormatAudit));
}

// The same record as GetAudit; an agent sees its own calls.
void GetCalls(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  GetAudit(exchange, std::move(respond));
}

void GetCallTranscript(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetTranscript(
      exchange->who, exchange->Value("call_id"),
      Answering<TranscriptView>(exchange, std::move(respond), 200, FormatTranscriptView));
}

void GetAuditObject(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetObject(
      exchange->who, exchange->Value("hash"),
      Answering<std::string>(exchange, std::move(respond), 200, FormatWhole));
}

void GetCheckpoint(const std::shared_ptr<Exchange>& exchange, Respond respond) {
  exchange->api->service.GetCheckpoint(
      exchange->who,
      Answering<CheckpointView>(exchange, std::move(respond), 200, FormatCheckpoint));
}

}  // namespace coffer::gateway
