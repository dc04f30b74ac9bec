// SPDX-License-Identifier: Apache-2.0
#include "cli/proxied_connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/sys.h"

namespace coffer::cli {

using raw::Arg;
using raw::Syscall;
using Kind = net::HttpBody::Kind;

namespace {

// Shorter than what servers wait for a further request, so that none is sent into a connection that ends.
constexpr std::chrono::seconds kKept{2};

}  // namespace

Result<std::unique_ptr<ProxiedConnection>> ProxiedConnection::Open(uint16_t port) {
  const long made = Syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) {
    return sys::ErrnoError("egress.proxy", "cannot make a socket", made);
  }
  UniqueFd fd(static_cast<int>(made));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const long answer = Syscall(SYS_connect, fd.get(), Arg(&address), sizeof(address));
  if (answer < 0 && answer != -EINPROGRESS) {
    return sys::ErrnoError("egress.proxy", "cannot reach the proxy", answer);
  }
  return std::unique_ptr<ProxiedConnection>(new ProxiedConnection(std::move(fd)));
}

void ProxiedConnection::Begin(std::string_view method, std::string head_and_body, Reader& reader) {
  method_ = method;
  leaves_ = std::move(head_and_body);
  written_ = 0;
  reader_ = &reader;
  in_body_ = false;
  keeps_ = false;
  body_ = {};
  chunks_ = {};
}

bool ProxiedConnection::spent() const {
  return !busy() && (fd_.get() < 0 || Clock::now() - used_ > kKept);
}

void ProxiedConnection::Drop() {
  reader_ = nullptr;
  fd_.Reset();
}

short ProxiedConnection::events(bool may_read) const {
  const bool writes = busy() && written_ < leaves_.size();
  return static_cast<short>((may_read || !busy() ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

void ProxiedConnection::Handle(short happened) {
  if (busy() && written_ < leaves_.size() && (happened & (POLLOUT | POLLERR | POLLHUP)) != 0) {
    Write();
  }
  if (fd_.get() >= 0 && (happened & (POLLIN | POLLERR | POLLHUP)) != 0) {
    Read();
  }
}

void ProxiedConnection::Write() {
  const long put = Syscall(SYS_sendto, fd_.get(), Arg(leaves_.data() + written_),
                           static_cast<long>(leaves_.size() - written_), MSG_NOSIGNAL, 0, 0);
  if (put >= 0) {
    written_ += static_cast<size_t>(put);
  } else if (put != -EAGAIN && put != -EINTR) {
    written_ = leaves_.size();  // an answer may have come all the same
  }
}

void ProxiedConnection::Read() {
  std::array<char, 65536> buffer;
  const long got = Syscall(SYS_read, fd_.get(), Arg(buffer.data()), buffer.size());
  if (got == -EAGAIN || got == -EINTR) {
    return;
  }
  if (!busy()) {  // its end, or bytes that nothing asked for
    fd_.Reset();
    return;
  }
  if (got <= 0) {
    const bool whole = in_body_ && body_.kind == Kind::kUntilClose && got == 0;
    keeps_ = false;
    End(whole ? "" : "the connection ended before the answer did");
    return;
  }
  came_.append(buffer.data(), static_cast<size_t>(got));
  TakeBytes();
}

void ProxiedConnection::TakeHead() {
  while (busy() && !in_body_) {
    const size_t size = net::FindHeadEnd(came_);
    if (size == 0) {
      if (came_.size() > net::kMostHeadBytes) {
        End("the head of the answer is too long");
      }
      return;
    }
    const Result<net::HttpResponseHead> head =
        net::ParseResponseHead(std::string_view(came_).substr(0, size), method_);
    came_.erase(0, size);
    if (!head.ok()) {
      End("the answer is not HTTP/1.1: " + head.error().message);
      return;
    }
    if (head->status == 101) {
      End("the server changes the protocol");
      return;
    }
    if (head->status < 200) {
      continue;
    }
    in_body_ = true;
    body_ = head->body;
    keeps_ = head->version == 11 && body_.kind != Kind::kUntilClose &&
             !head->fields.HasMember("Connection", "close");
    reader_->TakeHead(*head);
  }
}

void ProxiedConnection::TakeBytes() {
  TakeHead();
  if (!busy() || !in_body_) {
    return;
  }
  std::string piece;
  bool ends = body_.kind == Kind::kNone;
  if (body_.kind == Kind::kChunked) {
    came_.erase(0, chunks_.Feed(came_, &piece));
    ends = chunks_.done();
    if (chunks_.broken()) {
      End("the body of the answer is not well formed");
      return;
    }
  } else if (body_.kind != Kind::kNone) {
    const size_t size = body_.kind == Kind::kUntilClose
                            ? came_.size()
                            : static_cast<size_t>(std::min<uint64_t>(came_.size(), body_.length));
    piece = came_.substr(0, size);
    came_.erase(0, size);
    body_.length -= body_.kind == Kind::kLength ? size : 0;
    ends = body_.kind == Kind::kLength && body_.length == 0;
  }
  if (!piece.empty()) {
    reader_->TakeBody(piece);
  }
  if (ends && busy()) {
    keeps_ = keeps_ && came_.empty() && written_ == leaves_.size();
    End("");
  }
}

void ProxiedConnection::End(const std::string& problem) {
  Reader* const reader = std::exchange(reader_, nullptr);
  used_ = Clock::now();
  if (!problem.empty() || !keeps_) {
    fd_.Reset();
  }
  came_.clear();
  leaves_.clear();
  written_ = 0;
  reader->TakeEnd(problem);
}

}  // namespace coffer::cli
