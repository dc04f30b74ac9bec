// SPDX-License-Identifier: Apache-2.0
#include "egress/buffered_stream.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "egress/peer_watch.h"

namespace coffer::egress {
namespace {

constexpr size_t kPiece = size_t{64} * 1024;

// One direction. The end of the source becomes the end of the target; a target that takes nothing ends both. Once one
// direction has ended, the other may stand still for less.
net::Task<void> Carry(BufferedStream& from, BufferedStream& to, Watchdog& watchdog,
                      std::chrono::seconds& idle) {
  for (;;) {
    if (!from.buffer().empty()) {
      const std::string piece = std::exchange(from.buffer(), {});
      watchdog.Within(idle);
      const bool sent = co_await to.Write(piece);
      if (!sent) {
        from.stream().Close();
        to.stream().Close();
        co_return;
      }
    }
    const bool more = co_await from.Fill();
    if (!more) {
      idle = std::min(idle, kHalfOpenTime);
      watchdog.Within(idle);
      co_await to.stream().FinishWriting();
      co_return;
    }
    watchdog.Within(idle);
  }
}

}  // namespace

Watchdog::Watchdog(const net::IoExecutor& executor, std::function<void()> expired)
    : timer_(executor), expired_(std::move(expired)) {}

void Watchdog::Within(Nanos time) { Start(time); }

void Watchdog::Until(Nanos moment) { Start(std::max(moment - BootTime(), Nanos(0))); }

void Watchdog::Start(std::chrono::nanoseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([this, flag = std::weak_ptr(expired_flag_)](net::error_code error) {
    const std::shared_ptr<bool> alive = flag.lock();
    // It may have been set anew after this was due and before it ran.
    if (!error && alive != nullptr && timer_.expiry() <= Clock::now()) {
      *alive = true;
      expired_();
    }
  });
}

// Also what is due and has not run yet.
void Watchdog::Stop() { timer_.expires_at(Clock::time_point::max()); }

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
  received_ += count;
  ended_ = count == 0;
  if (budget_ != nullptr && !budget_->TakeIn(count)) {
    buffer_.resize(before);
    stream_->Close();
    co_return false;
  }
  co_return count > 0;
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

net::Task<void> CarryBothWays(BufferedStream& a, BufferedStream& b, Watchdog& watchdog,
                              std::chrono::seconds idle) {
  using namespace net::asio::experimental::awaitable_operators;  // NOLINT
  watchdog.Within(idle);
  co_await (Carry(a, b, watchdog, idle) && Carry(b, a, watchdog, idle));
}

}  // namespace coffer::egress
