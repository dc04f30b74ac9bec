// SPDX-License-Identifier: Apache-2.0
//
// One client's connection: reads a request, has it admitted and handled, writes the answer, and again.
//
// One request at a time, so a client that pipelines waits in the kernel's buffer. Every wait for the client has a
// deadline that the server's sweep enforces; waits for the service have none, and end when the connection is cut.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/http/exchange.h"
#include "gateway/http/parser.h"
#include "gateway/server.h"
#include "net/asio.h"
#include "net/tls.h"

namespace coffer::gateway {

// What connections share; outlives them.
struct ServerShared {
  ServerShared(net::Loop& loop, Service& service, HttpConfig config)
      : api{service, loop, std::move(config)} {}
  Api api;
  std::shared_ptr<net::TlsContext> tls;
  ServerStats stats;
  bool draining = false;

  std::string_view Date();  // of the Date field

 private:
  std::string date_;
  int64_t date_second_ = -1;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(std::shared_ptr<ServerShared> shared, std::unique_ptr<net::Stream> stream,
             Channel channel);
  ~Connection();

  const Channel& channel() const { return channel_; }

  // Ends when the connection does; keeps it alive meanwhile.
  static net::Task<void> Serve(std::shared_ptr<Connection> self);

  // Overdue: a client that is reading or writing too slowly is told so once, if it can be, and then cut.
  bool Overdue(Clock::time_point now) const { return now >= deadline_; }
  void Expire();
  // Cuts it, also while it waits for the service.
  void Close();
  // Closes it if it is idle; otherwise its next answer is its last.
  void Drain();

 private:
  class Reader;
  enum class Phase { kIdle, kReading, kWaiting, kWriting };

  net::Task<bool> ServeOne();
  net::Task<bool> ReadHead(Exchange* exchange);
  net::Task<bool> ReadBody(std::shared_ptr<Exchange> exchange);
  net::Task<void> ReadPiece(std::function<void(BodyReader::Piece)> reply);
  net::Task<BodyReader::Piece> NextPiece(std::chrono::milliseconds at_most);
  net::Task<bool> Handle(std::shared_ptr<Exchange> exchange);
  net::Task<bool> Answer(const Exchange& exchange, Response response);
  net::Task<bool> SendStream(std::shared_ptr<BodyStream> stream, bool chunked);
  net::Task<bool> Send(std::string_view first, std::string_view second);
  net::Task<void> Linger();
  net::Task<bool> Fill();

  // Waits for a callback of the service, or until the connection is cut: then nothing.
  template <typename T>
  net::Task<std::optional<T>> Await(std::function<void(std::function<void(T)>)> start);

  void SetDeadline(Phase phase, std::chrono::milliseconds time);

  std::shared_ptr<ServerShared> shared_;
  std::unique_ptr<net::Stream> stream_;
  Channel channel_;
  RequestParser parser_;
  std::string input_;  // received and not parsed
  Clock::time_point deadline_;
  Clock::time_point body_deadline_;
  uint64_t body_limit_ = 0;
  bool expects_continue_ = false;
  Phase phase_ = Phase::kIdle;
  bool expired_ = false;
  bool closed_ = false;
  std::shared_ptr<std::function<void()>> wake_;
};

}  // namespace coffer::gateway
