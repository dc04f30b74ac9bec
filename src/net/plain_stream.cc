// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "net/asio.h"

namespace coffer::net {
namespace {

class PlainStream : public Stream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}
  Task<size_t> ReadSome(char* data, size_t size) override {
    const auto [error, count] =
        co_await socket_.async_read_some(asio::buffer(data, size), kAwaitTuple);
    co_return error ? 0 : count;
  }
  Task<bool> Write(std::string_view first, std::string_view second) override {
    const std::array buffers = {asio::const_buffer(first.data(), first.size()),
                                asio::const_buffer(second.data(), second.size())};
    const auto [error, count] = co_await asio::async_write(socket_, buffers, kAwaitTuple);
    co_return !error;
  }
  Task<void> FinishWriting() override {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    co_return;
  }
  bool PeerGone() override { return HasHungUp(socket_.native_handle()); }
  void CancelRead() override {
    error_code ignored;
    socket_.cancel(ignored);
  }
  void Close() override {
    error_code ignored;
    socket_.close(ignored);
  }
  Socket* plain_socket() override { return &socket_; }

 private:
  Socket socket_;
};

}  // namespace

std::unique_ptr<Stream> MakePlainStream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace coffer::net
