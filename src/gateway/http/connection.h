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
#include "gateway/http/server_shared.h"
#include "net/asio.h"

namespace coffer::gateway {

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
  // Since when nothing would be lost with it: it waits for a request, has had its last answer, or
  // its client left before it was known who that is. Then it may be cut to make room for another
  // client. Nothing if it is in the middle of a request, or has just come.
  std::optional<Clock::time_point> idle_since(Clock::time_point now) const;
  // While the service works: a client that hung up is noted, so that its work is dropped. One whose request changes
  // something keeps its connection until that is done.
  void CheckClient();
  // Cuts it, also while it waits for the service.
  void Close();
  // Closes it if it is idle; otherwise its next answer is its last.
  void Drain();

 private:
  static constexpr size_t kReadBytes = 4096;       // what an idle connection holds
  static constexpr size_t kBodyReadBytes = 65536;  // while a body comes in
  static constexpr size_t kWriteBytes = 65536;     // each of these must be taken within stall_time
  // What a stream of either direction takes while it goes on: a piece that is read and one that is written.
  static constexpr size_t kStreamRoom = kBodyReadBytes + kWriteBytes;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  class Reader;
  enum class Phase { kIdle, kReading, kWaiting, kWriting, kLingering };

  net::Task<bool> ServeOne();
  net::Task<bool> ReadHead(Exchange* exchange);
  net::Task<bool> ReadBody(std::shared_ptr<Exchange> exchange);
  void HoldWhatCame(Exchange& exchange);
  net::Task<void> ReadPiece(std::function<void(BodyReader::Piece)> reply);
  net::Task<BodyReader::Piece> NextPiece(std::chrono::milliseconds at_most);
  net::Task<bool> Handle(std::shared_ptr<Exchange> exchange);
  net::Task<bool> Answer(const Exchange& exchange, Response response);
  net::Task<bool> SendStream(std::shared_ptr<BodyStream> stream, bool chunked);
  net::Task<bool> Send(std::string_view first, std::string_view second);
  net::Task<void> Linger();
  net::Task<bool> Fill();
  std::shared_ptr<BodyReader> MakeReader();

  // Waits for a callback of the service, or until the connection is cut: then nothing.
  template <typename T>
  net::Task<std::optional<T>> Await(std::function<void(std::function<void(T)>)> start);

  void SetDeadline(Phase phase, std::chrono::milliseconds time);
  // The client of the request in progress is gone, or its answer is all sent.
  void Leave();

  std::shared_ptr<ServerShared> shared_;
  std::unique_ptr<net::Stream> stream_;
  Channel channel_;
  RequestParser parser_;
  std::string input_;  // received and not parsed
  Clock::time_point deadline_;
  Clock::time_point body_deadline_;
  uint64_t body_limit_ = 0;
  std::shared_ptr<Asker> asker_;  // of the request in progress
  bool expects_continue_ = false;
  Phase phase_ = Phase::kIdle;
  Clock::time_point phase_began_ = Clock::now();
  bool expired_ = false;
  bool closed_ = false;
  std::shared_ptr<std::function<void()>> wake_;
};

}  // namespace coffer::gateway
