// SPDX-License-Identifier: Apache-2.0
//
// From bytes to a Head and the bytes of its body, behind plain types; one object per request.
//
// It never reads a socket. Beast reads the head only; of what it accepts, this refuses what has two readings: see
// head_checks.h, and chunks.h for bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/http/limits.h"
#include "gateway/http/message.h"
#include "gateway/http/problem.h"

namespace coffer::gateway {

class RequestParser {
 public:
  explicit RequestParser(const HttpLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // The size of the complete head at the front of `bytes`, 0 if more is needed. Sets `problem` if there will be none.
  size_t FindHead(std::string_view bytes, std::optional<Problem>* problem);

  // `bytes` is exactly one head. Fills `head`, or says what is wrong with it.
  std::optional<Problem> ParseHead(std::string_view bytes, Head* head);

  struct BodyStep {
    size_t consumed =
        0;  // bytes of the input that are done with; the rest must come again, with more after it
    std::string data;
    bool done = false;
    std::optional<Problem> problem;
  };
  // May be called while !body_done(). `limit` is on all of the body.
  BodyStep ParseBody(std::string_view bytes, uint64_t limit);
  bool body_done() const;
  bool head_done() const;

  // Ready for another request.
  void Reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  const HttpLimits& limits_;
  size_t searched_ = 0;
};

}  // namespace coffer::gateway
