// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/connection.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/hex.h"
#include "gateway/http/dispatch.h"
#include "gateway/http/handlers.h"

// co_await stands in statements of its own here, never in a condition: g++ 12 lays out the frame of a coroutine with
// `while (co_await ...)` wrongly, and it crashes.

namespace coffer::gateway {
namespace {

// A client that sends before it reads still has the rest of its upload to send.
constexpr size_t kLingerBytes = 256 << 20;
constexpr std::chrono::milliseconds kLingerTime{30000};
constexpr std::chrono::milliseconds kLastWords{2000};
constexpr std::chrono::milliseconds kGrace{1000};  // for a client that has just come

}  // namespace

Connection::Connection(std::shared_ptr<ServerShared> shared, std::unique_ptr<net::Stream> stream,
                       Channel channel)
    : shared_(std::move(shared)),
      stream_(std::move(stream)),
      channel_(std::move(channel)),
      parser_(shared_->api.config.limits),
      deadline_(kNever),
      body_deadline_(kNever) {}

Connection::~Connection() = default;

std::optional<Connection::Clock::time_point> Connection::idle_since(Clock::time_point now) const {
  const bool between = phase_ == Phase::kIdle || phase_ == Phase::kLingering;
  const bool slow_head = phase_ == Phase::kReading && !parser_.head_done();
  const bool left = asker_ != nullptr && asker_->gone && asker_->tenant == store::TenantId::None();
  if (closed_ || !(between || slow_head || left) || now - phase_began_ < kGrace) {
    return std::nullopt;
  }
  return phase_began_;
}

void Connection::SetDeadline(Phase phase, std::chrono::milliseconds time) {
  if (phase != phase_) {
    phase_began_ = Clock::now();
  }
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

void Connection::CheckClient() {
  if (phase_ != Phase::kWaiting || asker_ == nullptr || asker_->gone || !stream_->PeerGone()) {
    return;
  }
  Leave();
  if (asker_->only_reads) {
    Close();
  }
}

void Connection::Leave() {
  asker_->gone = true;
  if (const auto left = std::exchange(asker_->left, nullptr); left != nullptr) {
    left();
  }
}

void Connection::Close() {
  closed_ = true;
  if (asker_ != nullptr) {
    Leave();
  }
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

net::Task<bool> Connection::ServeOne() {
  parser_.Reset();
  body_deadline_ = kNever;
  auto exchange = std::make_shared<Exchange>();
  exchange->api = std::shared_ptr<const Api>(shared_, &shared_->api);
  exchange->channel = channel_;
  exchange->asker->key = channel_.address;
  asker_ = exchange->asker;
  const bool understood = co_await ReadHead(exchange.get());
  if (!understood) {
    co_return false;
  }
  ++shared_->stats.requests;
  asker_->only_reads =
      exchange->head.method == Method::kGet || exchange->head.method == Method::kHead;
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
  std::shared_ptr<void> progress;
  if (exchange->asker->tenant != store::TenantId::None()) {
    gateway::Answer<std::shared_ptr<void>> begun = shared_->Begin(*exchange->asker);
    if (!begun.ok()) {
      Response response = ProblemResponse(FatalProblem(begun.refusal()));
      co_await Answer(*exchange, std::move(response));
      co_return false;
    }
    progress = std::move(begun.value());
  }
  const bool complete = co_await ReadBody(exchange);
  if (!complete) {
    co_return false;
  }
  more = co_await Handle(exchange);
  co_return more;
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
    answered(exchange.who.tenant.name(),
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
  while (sent && !without_body && !response.pieces.empty()) {
    const std::string piece = std::move(response.pieces.front());
    response.pieces.pop_front();
    sent = co_await Send({}, piece);
  }
  if (sent && response.stream != nullptr && !without_body) {
    const bool chunked = response.chunked && !response.stream_size.has_value();
    response.room = shared_->api.service.HoldAnyway(*exchange.asker, kStreamRoom);
    sent = co_await SendStream(std::move(response.stream), chunked);
  }
  if (!sent) {
    co_return false;
  }
  response = {};  // its memory is the tenant's no longer
  if (!keep_alive) {
    co_await Linger();
  }
  co_return keep_alive;
}

net::Task<bool> Connection::SendStream(std::shared_ptr<BodyStream> stream, bool chunked) {
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
          size.insert(size.begin(), kHexDigits[left % 16]);
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
  const auto began = std::chrono::steady_clock::now();
  SetDeadline(Phase::kLingering, kLastWords);
  co_await stream_->FinishWriting();
  input_.clear();
  input_.resize(kReadBytes);
  size_t discarded = 0;
  while (!closed_ && discarded < kLingerBytes) {
    const size_t count = co_await stream_->ReadSome(input_.data(), input_.size());
    if (count == 0 || std::chrono::steady_clock::now() - began > kLingerTime) {
      co_return;
    }
    discarded += count;
    SetDeadline(Phase::kLingering, kLastWords);  // from the last byte on
  }
}

}  // namespace coffer::gateway
