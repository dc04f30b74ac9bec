// SPDX-License-Identifier: Apache-2.0
//
// The types of Boost.Asio that the gateway's few sources with Boost share. Only they may include this: it costs each
// of them many seconds to compile.
//
// One executor type (no type erasure) and one socket type for TCP and unix sockets, so that a connection is compiled
// once; TLS is behind Stream.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <string_view>

#include "net/io_executor.h"
#include "net/loop.h"

namespace coffer::net {

namespace asio = boost::asio;
using boost::system::error_code;

template <typename T>
using Task = asio::awaitable<T, IoExecutor>;
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, IoExecutor>;
inline constexpr asio::use_awaitable_t<IoExecutor> kAwait;
inline constexpr asio::as_tuple_t<asio::use_awaitable_t<IoExecutor>> kAwaitTuple(kAwait);

// The loop's io_context. Only for a Loop of MakeLoop.
asio::io_context& ContextOf(Loop& loop);

// POLLRDHUP on a socket, without waiting.
bool HasHungUp(int fd);

// Bytes in order, both ways; with or without TLS.
class Stream {
 public:
  virtual ~Stream() = default;
  // How many bytes, 0 at the end or after an error.
  virtual Task<size_t> ReadSome(char* data, size_t size) = 0;
  // Whether all was written.
  virtual Task<bool> Write(std::string_view first, std::string_view second) = 0;
  // No more will be written; the peer sees the end.
  virtual Task<void> FinishWriting() = 0;
  // Whether the peer has closed its side, also if it sent bytes before that were not read.
  virtual bool PeerGone() = 0;
  // Ends a read that waits; writing goes on working.
  virtual void CancelRead() = 0;
  // Ends whatever waits on it. Safe at any time.
  virtual void Close() = 0;
  // The socket whose bytes are those of the stream; null with TLS.
  virtual Socket* plain_socket() { return nullptr; }
};

// Without TLS; see net/tls.h for one with it.
std::unique_ptr<Stream> MakePlainStream(Socket socket);

}  // namespace coffer::net
