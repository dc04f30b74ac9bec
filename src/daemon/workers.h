// SPDX-License-Identifier: Apache-2.0
//
// A few threads for what would make the gateway's loop wait: the store and the disk. The queue is bounded: what does not
// fit is refused at once, never kept waiting without end.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coffer::daemon {

class Workers {
 public:
  Workers(size_t threads, size_t max_queued);
  ~Workers();  // finishes what was submitted
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False if the queue is full; then the task never runs.
  [[nodiscard]] bool Submit(std::function<void()> task);
  // For ends of calls, which must not be lost: never refused.
  void SubmitAlways(std::function<void()> task);

 private:
  void Work();

  const size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace coffer::daemon
