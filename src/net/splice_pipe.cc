// SPDX-License-Identifier: Apache-2.0
#include "net/splice_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>

namespace coffer::net {
namespace {

using raw::Syscall;

// More than a pipe of the usual size takes at once.
constexpr size_t kMostMoved = size_t{1} << 20;
// What a pipe has at first. A user with many pipes (pipe-user-pages-soft) gets smaller ones, which
// are slower than a copy.
constexpr long kLeastCapacity = 64L * 1024;

long Move(int from, int to, size_t most) {
  for (;;) {
    const long moved = Syscall(SYS_splice, from, 0, to, 0, static_cast<long>(most),
                               SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (moved != -EINTR) {
      return moved;
    }
  }
}

// Whether a read would not wait: there are bytes, an end or an error.
bool IsReadable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

}  // namespace

std::unique_ptr<SplicePipe> SplicePipe::Make(PipeAllowance& allowance) {
  if (allowance.left == 0) {
    return nullptr;
  }
  Result<sys::Pipe> pipe = sys::MakePipe(O_NONBLOCK);
  // A host may refuse the call itself, which it tells also if nothing is asked for.
  if (!pipe.ok() || Move(pipe->read_end.get(), pipe->write_end.get(), 0) < 0 ||
      Syscall(SYS_fcntl, pipe->write_end.get(), F_GETPIPE_SZ) < kLeastCapacity) {
    return nullptr;
  }
  --allowance.left;
  return std::unique_ptr<SplicePipe>(new SplicePipe(allowance, std::move(*pipe)));
}

Task<size_t> SplicePipe::FillFrom(Socket& socket) {
  for (bool waited = false;; waited = true) {
    const long moved = Move(socket.native_handle(), pipe_.write_end.get(), kMostMoved);
    if (moved > 0) {
      inside_ = static_cast<size_t>(moved);
      co_return inside_;
    }
    // At the mark of urgent data splice says EAGAIN (0 if the peer has ended), while the socket stays readable: another
    // wait would be over at once, and so on without an end.
    if (moved != -EAGAIN || (waited && IsReadable(socket.native_handle()))) {
      co_return 0;
    }
    const auto [error] = co_await socket.async_wait(Socket::wait_read, kAwaitTuple);
    if (error) {
      co_return 0;
    }
  }
}

Task<size_t> SplicePipe::EmptySomeInto(Socket& socket) {
  for (;;) {
    const long moved = Move(pipe_.read_end.get(), socket.native_handle(), inside_);
    if (moved > 0) {
      inside_ -= static_cast<size_t>(moved);
      co_return static_cast<size_t>(moved);
    }
    if (moved != -EAGAIN) {
      co_return 0;
    }
    const auto [error] = co_await socket.async_wait(Socket::wait_write, kAwaitTuple);
    if (error) {
      co_return 0;
    }
  }
}

}  // namespace coffer::net
