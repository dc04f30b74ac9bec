// SPDX-License-Identifier: Apache-2.0
#include "egress/carry.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>

#include "egress/peer_watch.h"

namespace coffer::egress {
namespace {

// A direction that has brought so much is worth a pipe.
constexpr uint64_t kMuch = uint64_t{256} * 1024;

class Direction {
 public:
  Direction(BufferedStream& from, BufferedStream& to, Watchdog& watchdog,
            std::chrono::seconds& idle, net::PipeAllowance& pipes)
      : from_(from), to_(to), watchdog_(watchdog), idle_(idle), pipes_(pipes) {}

  // The end of the source becomes the end of the target; a target that takes nothing ends both. Once one direction has
  // ended, the other may stand still for less.
  net::Task<void> Run() {
    for (;;) {
      if (!from_.buffer().empty()) {
        const std::string piece = std::exchange(from_.buffer(), {});
        carried_ += piece.size();
        watchdog_.Within(idle_);
        if (!Sent(co_await to_.Write(piece))) {
          co_return;
        }
      }
      if (carried_ >= kMuch && BufferedStream::ArePlain(from_, to_)) {
        if (const std::unique_ptr<net::SplicePipe> pipe = net::SplicePipe::Make(pipes_)) {
          co_await RunThrough(*pipe);
          co_return;
        }
      }
      const bool more = co_await from_.Fill();
      if (!more) {
        co_await Finish();
        co_return;
      }
      watchdog_.Within(idle_);
    }
  }

 private:
  net::Task<void> RunThrough(net::SplicePipe& pipe) {
    const net::IoExecutor executor = co_await net::asio::this_coro::executor;
    for (;;) {
      const size_t size = co_await from_.FillPipe(pipe);
      if (size == 0) {
        co_await Finish();
        co_return;
      }
      watchdog_.Within(idle_);
      if (!Sent(co_await to_.WritePipe(pipe, size))) {
        co_return;
      }
      watchdog_.Within(idle_);
      // Both may have been done at once. Others have their turn.
      co_await net::asio::post(executor, net::kAwait);
    }
  }

  bool Sent(bool sent) {
    if (!sent) {
      from_.stream().Close();
      to_.stream().Close();
    }
    return sent;
  }

  net::Task<void> Finish() {
    idle_ = std::min(idle_, kHalfOpenTime);
    watchdog_.Within(idle_);
    co_await to_.stream().FinishWriting();
  }

  BufferedStream& from_;
  BufferedStream& to_;
  Watchdog& watchdog_;
  std::chrono::seconds& idle_;  // of both directions
  net::PipeAllowance& pipes_;
  uint64_t carried_ = 0;
};

}  // namespace

net::Task<void> CarryBothWays(BufferedStream& a, BufferedStream& b, Watchdog& watchdog,
                              std::chrono::seconds idle, net::PipeAllowance& pipes) {
  using namespace net::asio::experimental::awaitable_operators;  // NOLINT
  watchdog.Within(idle);
  Direction there(a, b, watchdog, idle, pipes);
  Direction back(b, a, watchdog, idle, pipes);
  co_await (there.Run() && back.Run());
}

}  // namespace coffer::egress
