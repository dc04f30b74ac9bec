// SPDX-License-Identifier: Apache-2.0
//
// Carries queries from a UDP socket of a boundary's network to its resolver, and the answers back.
//
// A program can send as fast as it likes, and choose names that take long to read (letters beyond ASCII): queries are
// answered for one turn of a boundary (ADR 69), kMostAtOnce at most, and the next turn comes kPause later. What does not
// fit the socket's queue meanwhile is dropped by the kernel, as DNS expects.
#pragma once

#include <chrono>
#include <memory>

#include "base/unique_fd.h"
#include "egress/resolver.h"
#include "net/loop.h"

namespace coffer::egress {

class ResolverSocket {
 public:
  static constexpr int kMostAtOnce = 16;
  static constexpr std::chrono::microseconds kTurn{50};  // or one query that takes longer
  static constexpr std::chrono::milliseconds kPause{1};

  // Answers from here on, until it is dropped. The loop and the resolver outlive it.
  ResolverSocket(net::Loop& loop, Resolver& resolver, UniqueFd socket);

 private:
  void Listen();
  void AnswerSome();
  // False if no message is waiting.
  bool AnswerOne();

  net::Loop& loop_;
  Resolver& resolver_;
  const UniqueFd socket_;
  std::shared_ptr<void> waiting_;  // for a query, or for the pause to end
};

}  // namespace coffer::egress
