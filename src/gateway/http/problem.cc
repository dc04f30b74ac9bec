// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/problem.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "call/tool_call.h"
#include "gateway/http/message.h"

namespace coffer::gateway {

Problem MakeProblem(int status, std::string_view code, std::string detail, std::string hint) {
  Problem problem;
  problem.status = status;
  problem.code = code;
  problem.detail = std::move(detail);
  problem.hint = std::move(hint);
  return problem;
}

Problem FatalProblem(int status, std::string_view code, std::string detail, std::string hint) {
  Problem problem = MakeProblem(status, code, std::move(detail), std::move(hint));
  problem.close = true;
  return problem;
}

int StatusOf(RefusalKind kind) {
  switch (kind) {
    case RefusalKind::kInvalid:
      return 400;
    case RefusalKind::kUnauthenticated:
      return 401;
    case RefusalKind::kRefused:
      return 403;
    case RefusalKind::kNotFound:
      return 404;
    case RefusalKind::kConflict:
    case RefusalKind::kInFlight:
      return 409;
    case RefusalKind::kTooLarge:
      return 413;
    case RefusalKind::kUnprocessable:
      return 422;
    case RefusalKind::kRateLimited:
      return 429;
    case RefusalKind::kUnavailable:
      return 503;
    case RefusalKind::kInternal:
      break;
  }
  return 500;
}

Problem FromRefusal(const Refusal& refusal) {
  Problem problem =
      MakeProblem(StatusOf(refusal.kind), refusal.code.empty() ? "internal" : refusal.code,
                  refusal.message, refusal.hint);
  problem.call_id = refusal.call_id;
  problem.log = refusal.log;
  problem.details = refusal.details;
  if (refusal.retry_after.has_value()) {
    // Rounded up: a client that comes back on the second must not be early.
    const int64_t millis = std::max<int64_t>(refusal.retry_after->count(), 1);
    problem.retry_after = static_cast<uint64_t>((millis + 999) / 1000);
  } else if (refusal.kind == RefusalKind::kInFlight) {
    problem.retry_after = 1;  // a limit without a time is one that waiting does not lift
  }
  if (refusal.kind == RefusalKind::kUnauthenticated) {
    problem.authenticate = R"(Bearer realm="coffer", error="invalid_token")";
  }
  return problem;
}

Problem FatalProblem(const Refusal& refusal) {
  Problem problem = FromRefusal(refusal);
  problem.close = true;
  return problem;
}

std::string FormatProblem(const Problem& problem) {
  Json json = {{"type", "urn:coffer:problem:" + problem.code},
               {"title", ReasonPhrase(problem.status)},
               {"status", problem.status},
               {"detail", problem.detail},
               {"code", problem.code}};
  if (!problem.hint.empty()) {
    json["hint"] = problem.hint;
  }
  if (!problem.call_id.empty()) {
    json["call_id"] = problem.call_id;
  }
  if (problem.log.has_value()) {
    json["log"] = call::LogJson(problem.log);
  }
  if (problem.retry_after.has_value()) {
    json["retry_after"] = *problem.retry_after;
  }
  if (!problem.details.empty()) {
    Json errors = Json::array();
    for (const RefusalDetail& detail : problem.details) {
      errors.push_back({{"pointer", detail.pointer}, {"message", detail.message}});
    }
    json["errors"] = std::move(errors);
  }
  return PrintJson(json);
}

}  // namespace coffer::gateway
