// SPDX-License-Identifier: Apache-2.0
#include "egress/buffered_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "egress/tls_stream.h"

namespace coffer::egress {
namespace {

constexpr size_t kPiece = size_t{64} * 1024;

}  // namespace

std::string BufferedStream::Take(size_t size) {
  if (size >= buffer_.size()) {
    return std::exchange(buffer_, {});
  }
  std::string taken = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return taken;
}

net::Task<bool> BufferedStream::Fill() {
  const size_t before = buffer_.size();
  if (before >= kMostBuffered || ended_) {
    co_return false;
  }
  buffer_.resize(before + std::min(kPiece, kMostBuffered - before));
  const size_t count = co_await stream_->ReadSome(buffer_.data() + before, buffer_.size() - before);
  buffer_.resize(before + count);
  if (!CountReceived(count)) {
    buffer_.resize(before);
    co_return false;
  }
  co_return count > 0;
}

bool BufferedStream::CountReceived(size_t count) {
  received_ += count;
  ended_ = count == 0;
  if (budget_ != nullptr && !budget_->TakeIn(count)) {
    stream_->Close();
    return false;
  }
  return true;
}

bool BufferedStream::EndedWell() const {
  if (!ended_) {
    return false;
  }
  net::Socket* const socket = stream_->plain_socket();
  if (socket == nullptr) {
    const auto* const tls = dynamic_cast<const TlsStream*>(stream_.get());
    return tls != nullptr && (::SSL_get_shutdown(tls->ssl()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }
  // A read says nothing of an error that another has taken. The state does: these have had a FIN, and TCP_CLOSE is a reset.
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(socket->native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return false;  // closed by us
  }
  return info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_LAST_ACK ||
         info.tcpi_state == TCP_CLOSING || info.tcpi_state == TCP_TIME_WAIT;
}

void BufferedStream::ResetOnClose(bool reset) {
  if (net::Socket* const socket = stream_->plain_socket(); socket != nullptr) {
    net::error_code ignored;
    socket->set_option(net::asio::socket_base::linger(reset, 0), ignored);
  }
}

net::Task<bool> BufferedStream::FillPipe(net::SplicePipe& pipe) {
  const size_t count = ended_ ? 0 : co_await pipe.FillFrom(*stream_->plain_socket());
  co_return count > 0 && CountReceived(count);
}

net::Task<std::optional<std::string>> BufferedStream::ReadHead(size_t most) {
  size_t searched = 0;
  for (;;) {
    const size_t end = buffer_.find("\r\n\r\n", searched);
    if (end != std::string::npos && end + 4 <= most) {
      std::string head = buffer_.substr(0, end + 4);
      buffer_.erase(0, end + 4);
      co_return head;
    }
    if (end != std::string::npos || buffer_.size() >= most) {
      co_return std::nullopt;
    }
    searched = buffer_.size() < 3 ? 0 : buffer_.size() - 3;
    const bool more = co_await Fill();
    if (!more) {
      co_return std::nullopt;
    }
  }
}

net::Task<bool> BufferedStream::Write(std::string_view data) {
  if (budget_ != nullptr && !budget_->TakeOut(data.size())) {
    stream_->Close();
    co_return false;
  }
  const bool written = co_await stream_->Write(data, {});
  sent_ += written ? data.size() : 0;
  co_return written;
}

net::Task<bool> BufferedStream::WritePipe(net::SplicePipe& pipe,
                                          const std::function<void()>& moved) {
  if (budget_ != nullptr && !budget_->TakeOut(pipe.inside())) {
    stream_->Close();
    co_return false;
  }
  while (pipe.inside() > 0) {
    const size_t count = co_await pipe.EmptySomeInto(*stream_->plain_socket());
    if (count == 0) {
      co_return false;
    }
    sent_ += count;
    moved();
  }
  co_return true;
}

}  // namespace coffer::egress
