// SPDX-License-Identifier: Apache-2.0
#include "daemon/workers.h"

#include "base/thread_priority.h"

namespace coffer::daemon {

Workers::Workers(size_t threads, FairLimits limits)
    : queue_(std::make_shared<FairQueue>(threads, limits)) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([queue = queue_] { queue->Work(); });
  }
  threads_.emplace_back([queue = queue_] {
    GiveWayToOthers();
    queue->Work(FairQueue::Worker::kPatient);
  });
}

Workers::~Workers() {
  queue_->Stop();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

}  // namespace coffer::daemon
