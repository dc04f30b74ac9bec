// SPDX-License-Identifier: Apache-2.0
//
// The part of a connection that reads: a head, a body, and what a handler pulls of one.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "gateway/http/connection.h"
#include "gateway/http/dispatch.h"
#include "gateway/http/handlers.h"

// co_await stands in statements of its own here, never in a condition: see connection.cc.

namespace coffer::gateway {
namespace {

Problem TooSlow() {
  return FatalProblem(408, "http.timeout", "the request did not arrive in time");
}

}  // namespace

// Lets a handler pull the body, as long as the connection is there.
class Connection::Reader : public BodyReader {
 public:
  explicit Reader(std::weak_ptr<Connection> connection) : connection_(std::move(connection)) {}
  void Read(std::function<void(Piece)> reply) override {
    if (auto connection = connection_.lock(); connection != nullptr && !connection->closed_) {
      auto& context = net::ContextOf(connection->shared_->api.loop);
      net::asio::co_spawn(context.get_executor(), Pull(connection, std::move(reply)),
                          net::asio::detached);
    }
  }

 private:
  static net::Task<void> Pull(std::shared_ptr<Connection> connection,
                              std::function<void(Piece)> reply) {
    co_await connection->ReadPiece(std::move(reply));
  }
  std::weak_ptr<Connection> connection_;
};

std::shared_ptr<BodyReader> Connection::MakeReader() {
  return std::make_shared<Reader>(weak_from_this());
}

// More bytes at the end of input_; false at the end of the connection.
net::Task<bool> Connection::Fill() {
  const size_t had = input_.size();
  const size_t want = phase_ == Phase::kIdle || !parser_.head_done() ? kReadBytes : kBodyReadBytes;
  input_.resize(had + want);
  const size_t count = co_await stream_->ReadSome(input_.data() + had, want);
  input_.resize(had + count);
  co_return count > 0 && !closed_;
}

// False if no request follows; a malformed head has been answered.
net::Task<bool> Connection::ReadHead(Exchange* exchange) {
  const HttpLimits& limits = shared_->api.config.limits;
  if (input_.empty()) {
    if (shared_->draining) {
      co_return false;
    }
    input_.shrink_to_fit();
    SetDeadline(Phase::kIdle, limits.idle_time);
  } else {
    SetDeadline(Phase::kReading, limits.head_time);
  }
  std::optional<Problem> problem;
  size_t size = 0;
  while (size == 0 && !problem.has_value()) {
    if (!input_.empty()) {
      size = parser_.FindHead(input_, &problem);
      if (size != 0 || problem.has_value()) {
        break;
      }
      if (phase_ == Phase::kIdle) {
        SetDeadline(Phase::kReading, limits.head_time);
      }
    }
    const bool filled = co_await Fill();
    if (!filled) {
      if (!expired_ || closed_) {
        co_return false;
      }
      problem = TooSlow();
    }
  }
  if (!problem.has_value()) {
    problem = parser_.ParseHead(std::string_view(input_).substr(0, size), &exchange->head);
    input_.erase(0, size);
  }
  if (problem.has_value()) {
    Response response = ProblemResponse(*problem);
    co_await Answer(*exchange, std::move(response));
    co_return false;
  }
  co_return true;
}

// The body of a request with JSON; for a stream, what is needed to pull it.
net::Task<bool> Connection::ReadBody(std::shared_ptr<Exchange> exchange) {
  const HttpLimits& limits = shared_->api.config.limits;
  const bool stream = exchange->route->body == BodyKind::kStream;
  body_limit_ = BodyLimit(*exchange);
  body_deadline_ = Clock::now() + (stream ? limits.upload_time : limits.body_time);
  expects_continue_ = exchange->head.Find("Expect") != nullptr;
  const size_t size = exchange->head.content_length.value_or(body_limit_);
  const size_t room = stream ? kStreamRoom : size;
  if (exchange->head.HasBody() && room >= kCountedBytes) {
    gateway::Answer<std::shared_ptr<void>> held = shared_->api.service.Hold(*exchange->asker, room);
    if (!held.ok()) {
      Response response = ProblemResponse(FatalProblem(held.refusal()));
      co_await Answer(*exchange, std::move(response));
      co_return false;
    }
    exchange->body_room = std::move(held.value());
  }
  if (stream) {
    exchange->reader = MakeReader();
    co_return true;
  }
  exchange->body.reserve(exchange->head.content_length.value_or(0));
  while (!parser_.body_done()) {
    BodyReader::Piece piece = co_await NextPiece(limits.stall_time);
    if (piece.problem.has_value()) {
      Response response = ProblemResponse(*piece.problem);
      co_await Answer(*exchange, std::move(response));
      co_return false;
    }
    exchange->body += piece.bytes;
  }
  HoldWhatCame(*exchange);
  co_return true;
}

// A body without a length was counted with the most that it could have been, and what it asks for may take minutes.
void Connection::HoldWhatCame(Exchange& exchange) {
  if (exchange.head.content_length || exchange.body_room == nullptr) {
    return;
  }
  if (exchange.body.size() < kCountedBytes) {
    exchange.body_room = nullptr;
    return;
  }
  gateway::Answer<std::shared_ptr<void>> held =
      shared_->api.service.Hold(*exchange.asker, exchange.body.size());
  if (held.ok()) {  // else the first one stays
    exchange.body_room = std::move(held.value());
  }
}

net::Task<void> Connection::ReadPiece(std::function<void(BodyReader::Piece)> reply) {
  BodyReader::Piece piece = co_await NextPiece(shared_->api.config.limits.stall_time);
  if (closed_) {
    co_return;
  }
  phase_ = Phase::kWaiting;
  deadline_ = kNever;
  reply(std::move(piece));
}

// The next bytes of the body: one step of the parser that gives some, or the end.
net::Task<BodyReader::Piece> Connection::NextPiece(std::chrono::milliseconds at_most) {
  BodyReader::Piece piece;
  while (!parser_.body_done() && piece.bytes.empty()) {
    if (!input_.empty()) {
      RequestParser::BodyStep step = parser_.ParseBody(input_, body_limit_);
      input_.erase(0, step.consumed);
      piece.bytes = std::move(step.data);
      piece.problem = std::move(step.problem);
      if (piece.problem.has_value()) {
        co_return piece;
      }
      if (step.done || !piece.bytes.empty()) {
        break;
      }
    }
    if (std::exchange(expects_continue_, false) && input_.empty()) {
      const bool sent = co_await Send("HTTP/1.1 100 Continue\r\n\r\n", {});
      if (!sent) {
        piece.problem = FatalProblem(400, "http.cut", "the connection ended");
        co_return piece;
      }
    }
    phase_ = Phase::kReading;
    deadline_ = std::min(Clock::now() + at_most, body_deadline_);
    const bool filled = co_await Fill();
    if (!filled) {
      piece.problem =
          expired_ ? TooSlow() : FatalProblem(400, "http.cut", "the body ended before its length");
      co_return piece;
    }
  }
  piece.end = parser_.body_done();
  co_return piece;
}

}  // namespace coffer::gateway
