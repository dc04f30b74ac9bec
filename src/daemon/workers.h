// SPDX-License-Identifier: Apache-2.0
//
// A few threads for what would make the gateway's loop wait: the store, the disk, and making
// answers. Whose turn it is, the FairQueue decides. One thread more, of a lower priority, is the
// patient one.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "daemon/fair_queue.h"

namespace coffer::daemon {

class Workers {
 public:
  explicit Workers(size_t threads, FairLimits limits = {});
  ~Workers();  // finishes all submitted work
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  FairQueue& queue() { return *queue_; }

  // False if there is no place; then the task never runs.
  [[nodiscard]] bool Submit(const Lane& lane, FairTask task) {
    return queue_->Add(lane, std::move(task));
  }
  // The daemon's own upkeep.
  [[nodiscard]] bool Submit(std::function<void()> task) {
    return queue_->Add({}, {std::move(task), nullptr});
  }
  // For ends of calls and their like, which must not be lost: never refused.
  void SubmitAlways(const Lane& lane, std::function<void()> task) {
    queue_->AddAlways(lane, std::move(task));
  }
  void SubmitAlways(std::function<void()> task) { queue_->AddAlways({}, std::move(task)); }

 private:
  std::shared_ptr<FairQueue> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace coffer::daemon
