// SPDX-License-Identifier: Apache-2.0
//
// The gateway's one thread: an event loop, without showing which library turns it.
//
// Everything in the gateway happens on the thread inside Run(), so nothing there is locked. Post is the one way in
// from another thread; the rest may be called only on the loop's thread, or before Run(). A function given here must
// not throw. A Loop outlives the Server and the Service that use it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace coffer::net {

class Executor {
 public:
  virtual ~Executor() = default;
  // From any thread: runs `task` on the loop's thread, in the order of the posts, never inside Post itself.
  // After Stop nothing posted runs any more.
  virtual void Post(std::function<void()> task) = 0;
};

class Loop : public Executor {
 public:
  // Returns after Stop.
  virtual void Run() = 0;
  // From any thread, and more than once.
  virtual void Stop() = 0;

  // Runs `task` once after `delay`, unless the handle is dropped before.
  [[nodiscard]] virtual std::shared_ptr<void> After(std::chrono::milliseconds delay,
                                                    std::function<void()> task) = 0;

  // Runs `ready` each time `fd` can be read (or is at its end), until the handle is dropped. The loop does not own
  // `fd`: drop the handle before closing it.
  [[nodiscard]] virtual std::shared_ptr<void> WatchReadable(int fd,
                                                            std::function<void()> ready) = 0;

  // The same for writing; also when the other end is gone. Nothing if this process has no descriptor left.
  [[nodiscard]] virtual std::shared_ptr<void> WatchWritable(int fd,
                                                            std::function<void()> ready) = 0;

  // SIGTERM and the like as an event on the loop, until the handle is dropped.
  [[nodiscard]] virtual std::shared_ptr<void> WatchSignal(int signal,
                                                          std::function<void()> seen) = 0;
};

std::unique_ptr<Loop> MakeLoop();

}  // namespace coffer::net
