// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a client sends on one connection: head, checks, route, body. No crash, every refusal has a code, and a
// body never gets longer than its limit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gateway/http/fields.h"
#include "gateway/http/head_checks.h"
#include "gateway/http/parser.h"
#include "gateway/http/route.h"

namespace {

using namespace coffer::gateway;

void LookAt(Head head) {
  Channel channel;
  channel.local_address = "127.0.0.1";
  const auto target = SplitTarget(&head);
  (void)CheckSite(head, channel, {});
  (void)ReadBearer(head).ok();
  (void)ReadIdempotencyKey(head).ok();
  (void)ReadTraceparent(head);
  (void)ReadLastEventId(head).ok();
  (void)CheckJsonBody(head);
  if (!target.has_value()) {
    return;
  }
  const Match match = FindRoute(Routes(), head.method, target->path);
  if (match.route != nullptr) {
    (void)CheckValues(match.raw).ok();
    (void)ParseQuery(target->query, match.route->query).ok();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  HttpLimits limits;
  limits.head_bytes = 4096;
  constexpr uint64_t kBody = 1000;
  if (size == 0) {
    return 0;
  }
  // The first byte is how many bytes arrive at a time.
  const size_t step = std::max<size_t>(data[0], 1);
  std::string_view wire(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string input;
  RequestParser parser(limits);
  bool head_done = false;
  size_t body = 0;
  while (true) {
    std::optional<Problem> problem;
    bool need_more = true;
    if (!head_done && !input.empty()) {
      const size_t head_size = parser.FindHead(input, &problem);
      if (head_size > 0) {
        Head head;
        problem = parser.ParseHead(std::string_view(input).substr(0, head_size), &head);
        input.erase(0, head_size);
        head_done = true;
        need_more = false;
        if (!problem.has_value()) {
          LookAt(std::move(head));
        }
      }
    } else if (head_done && !parser.body_done() && !input.empty()) {
      auto one = parser.ParseBody(input, kBody);
      problem = one.problem;
      body += one.data.size();
      input.erase(0, one.consumed);
      need_more = one.consumed == 0;
      if (!problem.has_value() && body > kBody) {
        std::abort();
      }
    }
    if (problem.has_value()) {
      if (problem->code.empty() || problem->status < 400) {
        std::abort();
      }
      return 0;
    }
    if (head_done && parser.body_done()) {
      parser.Reset();
      head_done = false;
      body = 0;
      if (!input.empty()) {
        continue;
      }
    }
    if (need_more || input.empty()) {
      if (wire.empty()) {
        return 0;
      }
      input += wire.substr(0, step);
      wire.remove_prefix(std::min(step, wire.size()));
    }
  }
}
