// SPDX-License-Identifier: Apache-2.0
#include "daemon/workers.h"

#include <sys/resource.h>

namespace coffer::daemon {
namespace {

// Lower than all that serves others. Not the lowest: between tasks it takes the queue's lock, also on a host whose
// processors are all busy.
constexpr int kPatientNice = 10;

}  // namespace

Workers::Workers(size_t threads, FairLimits limits)
    : queue_(std::make_shared<FairQueue>(threads, limits)) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([queue = queue_] { queue->Work(); });
  }
  threads_.emplace_back([queue = queue_] {
    // Of this thread alone, as Linux does it. It needs no privilege, and cannot fail for a thread of our own.
    (void)::setpriority(PRIO_PROCESS, 0, kPatientNice);
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
