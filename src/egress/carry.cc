// SPDX-License-Identifier: Apache-2.0
#include "egress/carry.h"

#include <fmt/format.h>

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
    for (bool pipes = true;;) {
      if (!from_.buffer().empty()) {
        const std::string piece = std::exchange(from_.buffer(), {});
        carried_ += piece.size();
        watchdog_.Within(idle_);
        if (!Sent(co_await to_.Write(piece))) {
          co_return;
        }
      }
      if (pipes && carried_ >= kMuch && BufferedStream::ArePlain(from_, to_)) {
        if (const std::unique_ptr<net::SplicePipe> pipe = net::SplicePipe::Make(pipes_)) {
          const bool whole = co_await RunThrough(*pipe);
          if (!whole) {
            co_return;
          }
          pipes = false;  // its end, or urgent data: what follows is read and copied
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
  // Until nothing more comes through a pipe. False: what came could not be written.
  net::Task<bool> RunThrough(net::SplicePipe& pipe) {
    const net::IoExecutor executor = co_await net::asio::this_coro::executor;
    const std::function<void()> moved = [this] { watchdog_.Within(idle_); };
    for (;;) {
      const bool more = co_await from_.FillPipe(pipe);
      if (!more) {
        co_return true;
      }
      moved();
      if (!Sent(co_await to_.WritePipe(pipe, moved))) {
        co_return false;
      }
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

net::Task<std::string> CarryBothWays(BufferedStream& a, BufferedStream& b, Watchdog& watchdog,
                                     std::chrono::seconds idle, net::PipeAllowance& pipes) {
  using namespace net::asio::experimental::awaitable_operators;  // NOLINT
  watchdog.Within(idle);
  Direction there(a, b, watchdog, idle, pipes);
  Direction back(b, a, watchdog, idle, pipes);
  co_await (there.Run() && back.Run());
  co_return watchdog.expired() ? fmt::format("no byte moved for {} s", idle.count())
                               : std::string();
}

}  // namespace coffer::egress
