// SPDX-License-Identifier: Apache-2.0
#include "net/splice_pipe.h"

#include <errno.h>
#include <sys/syscall.h>

namespace coffer::net {
namespace {

using raw::Syscall;

// More than a pipe of the usual size takes at once.
constexpr size_t kMostMoved = size_t{1} << 20;

long Move(int from, int to, size_t most) {
  for (;;) {
    const long moved = Syscall(SYS_splice, from, 0, to, 0, static_cast<long>(most),
                               SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (moved != -EINTR) {
      return moved;
    }
  }
}

}  // namespace

std::unique_ptr<SplicePipe> SplicePipe::Make(PipeAllowance& allowance) {
  if (allowance.left == 0) {
    return nullptr;
  }
  Result<sys::Pipe> pipe = sys::MakePipe(O_NONBLOCK);
  // A host may refuse the call itself, which it tells also if nothing is asked for.
  if (!pipe.ok() || Move(pipe->read_end.get(), pipe->write_end.get(), 0) < 0) {
    return nullptr;
  }
  --allowance.left;
  return std::unique_ptr<SplicePipe>(new SplicePipe(allowance, std::move(*pipe)));
}

Task<size_t> SplicePipe::FillFrom(Socket& socket) {
  for (;;) {
    const long moved = Move(socket.native_handle(), pipe_.write_end.get(), kMostMoved);
    if (moved != -EAGAIN) {
      inside_ = moved > 0 ? static_cast<size_t>(moved) : 0;
      co_return inside_;
    }
    const auto [error] = co_await socket.async_wait(Socket::wait_read, kAwaitTuple);
    if (error) {
      co_return 0;
    }
  }
}

Task<bool> SplicePipe::EmptyInto(Socket& socket) {
  while (inside_ > 0) {
    const long moved = Move(pipe_.read_end.get(), socket.native_handle(), inside_);
    if (moved > 0) {
      inside_ -= static_cast<size_t>(moved);
      continue;
    }
    if (moved != -EAGAIN) {
      co_return false;
    }
    const auto [error] = co_await socket.async_wait(Socket::wait_write, kAwaitTuple);
    if (error) {
      co_return false;
    }
  }
  co_return true;
}

}  // namespace coffer::net
