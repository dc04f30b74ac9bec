// SPDX-License-Identifier: Apache-2.0
#include "egress/tls_stream.h"

#include <openssl/err.h>

#include <algorithm>
#include <climits>

namespace coffer::egress {
namespace {

constexpr size_t kRoom =
    64UL * 1024 + 2048;  // four whole records: a read or write of a socket costs as much as one
constexpr size_t kMostBytesAtOnce = 64UL * 1024;
constexpr size_t kMostWaiting = 1 << 20;  // for a peer that takes nothing

}  // namespace

TlsStream::TlsStream(std::unique_ptr<net::Stream> below, UniqueSsl ssl, std::string_view first)
    : below_(std::move(below)), ssl_(std::move(ssl)), came_(kRoom, '\0'), leaves_(kRoom, '\0') {
  in_ = ::BIO_new(::BIO_s_mem());
  out_ = ::BIO_new(::BIO_s_mem());
  // An empty memory BIO then means "later", not the end (BIO_s_mem(3)).
  ::BIO_set_mem_eof_return(in_, -1);
  ::BIO_set_mem_eof_return(out_, -1);
  ::SSL_set_bio(ssl_.get(), in_, out_);
  if (!first.empty()) {
    ::BIO_write(in_, first.data(), static_cast<int>(first.size()));
  }
}

net::Task<bool> TlsStream::Flush() {
  if (sending_) {
    co_return ::BIO_ctrl_pending(out_) < kMostWaiting;
  }
  sending_ = true;
  bool sent = true;
  while (sent) {
    const int count = ::BIO_read(out_, leaves_.data(), static_cast<int>(leaves_.size()));
    if (count <= 0) {
      break;
    }
    sent =
        co_await below_->Write(std::string_view(leaves_).substr(0, static_cast<size_t>(count)), {});
  }
  sending_ = false;
  co_return sent;
}

net::Task<bool> TlsStream::Fill() {
  // The end of a socket is told once: another read would wait for an event that does not come.
  const size_t count = ended_ ? 0 : co_await below_->ReadSome(came_.data(), came_.size());
  if (count == 0) {
    ended_ = true;
    co_return false;
  }
  co_return ::BIO_write(in_, came_.data(), static_cast<int>(count)) == static_cast<int>(count);
}

net::Task<bool> TlsStream::Handshake() {
  for (;;) {
    const int answer = ::SSL_do_handshake(ssl_.get());
    // Right after the call: it reads the thread's queue of errors (SSL_get_error(3)), which is
    // cleared next, so that no other connection finds them.
    const int why = ::SSL_get_error(ssl_.get(), answer);
    ::ERR_clear_error();
    const bool sent = co_await Flush();  // an alert too
    if (answer == 1) {
      co_return sent;
    }
    if (!sent || why != SSL_ERROR_WANT_READ) {
      co_return false;
    }
    const bool came = co_await Fill();
    if (!came) {
      co_return false;
    }
  }
}

net::Task<size_t> TlsStream::ReadSome(char* data, size_t size) {
  const int room = static_cast<int>(std::min<size_t>(size, INT_MAX));
  for (;;) {
    int count = ::SSL_read(ssl_.get(), data, room);
    const int why = ::SSL_get_error(ssl_.get(), count);
    // The library reads one record at a time. What else is there goes with it; how it ends shows at the next call.
    while (count > 0 && count < room && ::BIO_ctrl_pending(in_) > 0) {
      const int more = ::SSL_read(ssl_.get(), data + count, room - count);
      if (more <= 0) {
        break;
      }
      count += more;
    }
    ::ERR_clear_error();
    if (::BIO_ctrl_pending(out_) > 0) {
      const bool sent = co_await Flush();
      if (!sent) {
        co_return 0;
      }
    }
    if (count > 0) {
      co_return static_cast<size_t>(count);
    }
    if (why != SSL_ERROR_WANT_READ) {
      co_return 0;
    }
    const bool came = co_await Fill();
    if (!came) {
      co_return 0;
    }
  }
}

net::Task<bool> TlsStream::Write(std::string_view first, std::string_view second) {
  for (std::string_view part : {first, second}) {
    while (!part.empty()) {
      const int piece = static_cast<int>(std::min(part.size(), kMostBytesAtOnce));
      const int count = ::SSL_write(ssl_.get(), part.data(), piece);
      ::ERR_clear_error();
      if (count <= 0) {
        co_return false;  // not for lack of room: it writes to memory, and renegotiation is off
      }
      part.remove_prefix(static_cast<size_t>(count));
      const bool sent = co_await Flush();
      if (!sent) {
        co_return false;
      }
    }
  }
  co_return true;
}

net::Task<void> TlsStream::FinishWriting() {
  ::SSL_shutdown(ssl_.get());
  ::ERR_clear_error();
  const bool sent = co_await Flush();
  if (sent) {
    co_await below_->FinishWriting();
  }
}

}  // namespace coffer::egress
