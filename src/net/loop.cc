// SPDX-License-Identifier: Apache-2.0
#include "net/loop.h"

#include <fcntl.h>
#include <poll.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/descriptor_base.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_fd.h"
#include "net/asio.h"

namespace coffer::net {
namespace {

class AsioLoop : public Loop {
 public:
  AsioLoop() : context_(1), guard_(context_.get_executor()) {}

  asio::io_context& context() { return context_; }

  void Post(std::function<void()> task) override { asio::post(context_, std::move(task)); }
  void Run() override {
    context_.restart();
    context_.run();
  }
  void Stop() override { context_.stop(); }

  std::shared_ptr<void> After(std::chrono::milliseconds delay,
                              std::function<void()> task) override {
    auto timer = std::make_shared<asio::steady_timer>(context_, delay);
    // The wait does not own the timer: dropping the handle cancels it, also if it is due already.
    timer->async_wait([weak = std::weak_ptr(timer), task = std::move(task)](error_code error) {
      if (!error && !weak.expired()) {
        task();
      }
    });
    return timer;
  }

  std::shared_ptr<void> WatchReadable(int fd, std::function<void()> ready) override {
    auto watch = std::make_shared<Watch>(context_, fd);
    WaitAgain(watch, asio::posix::descriptor_base::wait_read,
              std::make_shared<std::function<void()>>(std::move(ready)));
    return watch;
  }

  std::shared_ptr<void> WatchWritable(int fd, std::function<void()> ready) override {
    // A copy: epoll refuses a descriptor that it knows, and this one may be watched for reading.
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) {
      return nullptr;
    }
    auto watch = std::make_shared<Watch>(context_, std::move(copy));
    WaitAgain(watch, asio::posix::descriptor_base::wait_write,
              std::make_shared<std::function<void()>>(std::move(ready)));
    return watch;
  }

  std::shared_ptr<void> WatchSignal(int signal, std::function<void()> seen) override {
    auto signals = std::make_shared<asio::signal_set>(context_, signal);
    WaitSignal(signals, std::make_shared<std::function<void()>>(std::move(seen)));
    return signals;
  }

 private:
  // A descriptor that is not asio's: released, never closed by it.
  struct Watch {
    Watch(asio::io_context& context, int fd) : descriptor(context, fd) {}
    Watch(asio::io_context& context, UniqueFd copy)
        : own(std::move(copy)), descriptor(context, own.get()) {}
    ~Watch() { descriptor.release(); }
    UniqueFd own;
    asio::posix::stream_descriptor descriptor;
  };

  static void WaitAgain(const std::shared_ptr<Watch>& watch,
                        asio::posix::descriptor_base::wait_type what,
                        std::shared_ptr<std::function<void()>> ready) {
    watch->descriptor.async_wait(
        what, [weak = std::weak_ptr(watch), what, ready = std::move(ready)](error_code error) {
          auto alive = weak.lock();
          if (error || alive == nullptr) {
            return;
          }
          alive.reset();  // `ready` may drop the handle
          (*ready)();
          if (auto still = weak.lock(); still != nullptr) {
            WaitAgain(still, what, ready);
          }
        });
  }

  static void WaitSignal(const std::shared_ptr<asio::signal_set>& signals,
                         std::shared_ptr<std::function<void()>> seen) {
    signals->async_wait(
        [weak = std::weak_ptr(signals), seen = std::move(seen)](error_code error, int) {
          if (error || weak.expired()) {
            return;
          }
          (*seen)();
          if (auto still = weak.lock(); still != nullptr) {
            WaitSignal(still, seen);
          }
        });
  }

  asio::io_context context_;
  // Of the context's own executor: an IoExecutor counts no work, and a loop without events would end.
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
};

}  // namespace

bool HasHungUp(int fd) {
  pollfd one{fd, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

asio::io_context& ContextOf(Loop& loop) { return static_cast<AsioLoop&>(loop).context(); }

std::unique_ptr<Loop> MakeLoop() { return std::make_unique<AsioLoop>(); }

}  // namespace coffer::net
