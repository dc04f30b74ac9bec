// SPDX-License-Identifier: Apache-2.0
//
// Problem details (RFC 9457): the form of every refusal of the gateway.
//
// `code` is stable and dotted; clients switch on it, people read `detail` and `hint`. Nothing that came from the client
// is repeated unless it was made printable, and nothing of the host is ever in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "gateway/service.h"

namespace coffer::gateway {

struct Problem {
  int status = 500;
  std::string code;
  std::string detail;
  std::string hint;
  std::optional<uint64_t> retry_after;  // whole seconds, at least 1
  std::string call_id;
  std::optional<audit::LogPosition> log;
  std::vector<RefusalDetail> details;
  std::string allow;         // 405: the methods there are
  std::string authenticate;  // 401: WWW-Authenticate
  bool close = false;        // the rest of the connection cannot be understood
};

Problem MakeProblem(int status, std::string_view code, std::string detail, std::string hint = {});
// The same, and the connection ends: what follows on it cannot be trusted to be a request.
Problem FatalProblem(int status, std::string_view code, std::string detail, std::string hint = {});

// The status for each kind is beside it in service.h.
Problem FromRefusal(const Refusal& refusal);
// The same, and the connection ends.
Problem FatalProblem(const Refusal& refusal);
int StatusOf(RefusalKind kind);

// {"type", "title", "status", "detail", "code"} and, where there is something to say, "hint", "call_id", "errors".
std::string FormatProblem(const Problem& problem);

}  // namespace coffer::gateway
