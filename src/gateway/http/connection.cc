// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/connection.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "gateway/http/dispatch.h"

// co_await stands in statements of its own here, never in a condition: g++ 12 lays out the frame of a coroutine with
// `while (co_await ...)` wrongly, and it crashes.

namespace coffer::gateway {
namespace {

constexpr size_t kReadBytes = 4096;       // what an idle connection holds
constexpr size_t kBodyReadBytes = 65536;  // while a body comes in
constexpr size_t kWriteBytes = 65536;     // each of these must be taken within stall_time
constexpr size_t kLingerBytes = 1 << 20;
constexpr std::chrono::milliseconds kLastWords{2000};
constexpr Connection::Clock::time_point kNever = Connection::Clock::time_point::max();

Problem TooSlow() {
  return FatalProblem(408, "http.timeout", "the request did not arrive in time");
}

}  // namespace

std::string_view ServerShared::Date() {
  const Nanos now = WallTime();
  const int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  if (second != date_second_) {
    date_second_ = second;
    date_ = HttpDate(now);
  }
  return date_;
}

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

Connection::Connection(std::shared_ptr<ServerShared> shared, std::unique_ptr<net::Stream> stream,
                       Channel channel)
    : shared_(std::move(shared)),
      stream_(std::move(stream)),
      channel_(std::move(channel)),
      parser_(shared_->api.config.limits),
      deadline_(kNever),
      body_deadline_(kNever) {}

Connection::~Connection() = default;

void Connection::SetDeadline(Phase phase, std::chrono::milliseconds time) {
  phase_ = phase;
  deadline_ = Clock::now() + time;
}

void Connection::Expire() {
  ++shared_->stats.timed_out;
  if (phase_ == Phase::kReading && !expired_) {
    expired_ = true;
    deadline_ = Clock::now() + kLastWords;
    stream_->CancelRead();
    return;
  }
  Close();
}

void Connection::Close() {
  closed_ = true;
  deadline_ = kNever;
  stream_->Close();
  if (auto wake = std::exchange(wake_, nullptr); wake != nullptr && *wake != nullptr) {
    std::exchange(*wake, nullptr)();
  }
}

void Connection::Drain() {
  if (phase_ == Phase::kIdle) {
    Close();
  }
}

template <typename T>
net::Task<std::optional<T>> Connection::Await(std::function<void(std::function<void(T)>)> start) {
  struct Slot {
    std::optional<T> value;
    std::shared_ptr<std::function<void()>> wake = std::make_shared<std::function<void()>>();
  };
  auto slot = std::make_shared<Slot>();
  phase_ = Phase::kWaiting;
  deadline_ = kNever;
  start([slot](T value) {
    if (!slot->value.has_value()) {
      slot->value.emplace(std::move(value));
      if (*slot->wake != nullptr) {
        std::exchange(*slot->wake, nullptr)();
      }
    }
  });
  if (!slot->value.has_value() && !closed_) {
    wake_ = slot->wake;
    auto initiate = [slot,
                     executor = net::ContextOf(shared_->api.loop).get_executor()](auto handler) {
      auto shared_handler = std::make_shared<decltype(handler)>(std::move(handler));
      // Not from inside the reply: a service must not find itself called again before its reply has returned.
      *slot->wake = [shared_handler, executor] {
        net::asio::post(executor, [shared_handler] { std::move (*shared_handler)(); });
      };
    };
    auto token = net::kAwait;
    co_await net::asio::async_initiate<net::asio::use_awaitable_t<net::IoExecutor>, void()>(
        initiate, token);
    wake_ = nullptr;
  }
  if (closed_) {
    co_return std::nullopt;
  }
  co_return std::move(slot->value);
}

net::Task<void> Connection::Serve(std::shared_ptr<Connection> self) {
  if (self->channel_.tls) {
    self->SetDeadline(Phase::kIdle, self->shared_->api.config.limits.handshake_time);
    const bool shaken = co_await self->shared_->tls->Handshake(self->stream_.get());
    if (!shaken) {
      self->Close();
      co_return;
    }
  }
  bool more = true;
  while (more) {
    more = co_await self->ServeOne();
  }
  self->Close();
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

net::Task<bool> Connection::ServeOne() {
  parser_.Reset();
  body_deadline_ = kNever;
  auto exchange = std::make_shared<Exchange>();
  exchange->api = std::shared_ptr<const Api>(shared_, &shared_->api);
  exchange->channel = channel_;
  const bool understood = co_await ReadHead(exchange.get());
  if (!understood) {
    co_return false;
  }
  ++shared_->stats.requests;
  std::function<void(std::function<void(std::optional<Response>)>)> admit =
      [exchange](std::function<void(std::optional<Response>)> decided) {
        Admit(exchange, std::move(decided));
      };
  std::optional<std::optional<Response>> refused =
      co_await Await<std::optional<Response>>(std::move(admit));
  if (!refused.has_value()) {
    co_return false;
  }
  bool more = false;
  if (refused->has_value()) {
    more = co_await Answer(*exchange, std::move(**refused));
    co_return more;
  }
  const bool complete = co_await ReadBody(exchange);
  if (!complete) {
    co_return false;
  }
  more = co_await Handle(exchange);
  co_return more;
}

// False if there is nothing to go on with; what was wrong has been answered.
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
  if (stream) {
    exchange->reader = std::make_shared<Reader>(weak_from_this());
    co_return true;
  }
  while (!parser_.body_done()) {
    BodyReader::Piece piece = co_await NextPiece(limits.stall_time);
    if (piece.problem.has_value()) {
      Response response = ProblemResponse(*piece.problem);
      co_await Answer(*exchange, std::move(response));
      co_return false;
    }
    exchange->body += piece.bytes;
  }
  co_return true;
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

net::Task<bool> Connection::Handle(std::shared_ptr<Exchange> exchange) {
  std::function<void(std::function<void(Response)>)> handle = [exchange](const Respond& respond) {
    try {
      exchange->route->handler(exchange, respond);
    } catch (const std::exception&) {
      respond(
          ProblemResponse(MakeProblem(500, "internal", "something went wrong inside Cofferdam")));
    }
  };
  std::optional<Response> response = co_await Await<Response>(std::move(handle));
  exchange->reader = nullptr;
  if (!response.has_value()) {
    co_return false;
  }
  const bool more = co_await Answer(*exchange, std::move(*response));
  co_return more;
}

// Whether another request may follow.
net::Task<bool> Connection::Answer(const Exchange& exchange, Response response) {
  if (const auto& answered = shared_->api.config.answered; answered != nullptr) {
    answered(exchange.who.tenant,
             exchange.route != nullptr ? exchange.route->path : std::string_view{},
             MethodName(exchange.head.method), response.status);
  }
  const bool understood = parser_.head_done();
  const bool unread = !understood || !parser_.body_done();
  const bool keep_alive =
      understood && exchange.head.keep_alive && !response.close && !unread && !shared_->draining;
  const bool without_body = exchange.head.method == Method::kHead;
  if (exchange.head.version == 10) {
    response.chunked = false;
  }
  const std::string head = FormatResponseHead(response, keep_alive, shared_->Date());
  const std::string_view body = without_body ? std::string_view{} : std::string_view(response.body);
  bool sent = co_await Send(head, body);
  if (sent && response.stream != nullptr && !without_body) {
    const bool chunked = response.chunked && !response.stream_size.has_value();
    sent = co_await SendStream(std::move(response.stream), chunked);
  }
  if (!sent) {
    co_return false;
  }
  if (!keep_alive) {
    co_await Linger();
  }
  co_return keep_alive;
}

net::Task<bool> Connection::SendStream(std::shared_ptr<BodyStream> stream, bool chunked) {
  static constexpr char kDigits[] = "0123456789abcdef";
  while (true) {
    std::function<void(std::function<void(BodyStream::Piece)>)> next =
        [stream](std::function<void(BodyStream::Piece)> reply) { stream->Next(std::move(reply)); };
    std::optional<BodyStream::Piece> piece = co_await Await<BodyStream::Piece>(std::move(next));
    if (!piece.has_value() || piece->failed) {
      co_return false;
    }
    if (!piece->bytes.empty()) {
      std::string size;
      if (chunked) {
        for (size_t left = piece->bytes.size(); left > 0; left /= 16) {
          size.insert(size.begin(), kDigits[left % 16]);
        }
        size += "\r\n";
        piece->bytes += "\r\n";
      }
      const bool sent = co_await Send(size, piece->bytes);
      if (!sent) {
        co_return false;
      }
    }
    if (piece->end) {
      const std::string_view last = chunked ? "0\r\n\r\n" : "";
      const bool sent = co_await Send(last, {});
      co_return sent;
    }
  }
}

net::Task<bool> Connection::Send(std::string_view first, std::string_view second) {
  const std::chrono::milliseconds time = shared_->api.config.limits.stall_time;
  while (!first.empty() || !second.empty()) {
    const std::string_view now = second.substr(0, kWriteBytes);
    SetDeadline(Phase::kWriting, expired_ ? kLastWords : time);
    if (closed_) {
      co_return false;
    }
    const bool written = co_await stream_->Write(first, now);
    if (!written) {
      co_return false;
    }
    first = {};
    second.remove_prefix(now.size());
  }
  co_return !closed_;
}

// Closing a socket with unread bytes resets it, and the reset can overtake the answer (RFC 9112 section 9.6).
net::Task<void> Connection::Linger() {
  SetDeadline(Phase::kWriting, kLastWords);
  co_await stream_->FinishWriting();
  input_.clear();
  input_.resize(kReadBytes);
  size_t discarded = 0;
  while (!closed_ && discarded < kLingerBytes) {
    const size_t count = co_await stream_->ReadSome(input_.data(), input_.size());
    if (count == 0) {
      co_return;
    }
    discarded += count;
  }
}

}  // namespace coffer::gateway
