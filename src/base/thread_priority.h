// SPDX-License-Identifier: Apache-2.0
//
// Priorities of single threads, as Linux has them: a thread whose work no client waits for gives way to the threads
// that serve clients, and the thread that answers probes comes before them.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer {

// Lowers the priority of the calling thread alone, as Linux does it, for the rest of its life:
// raising it again takes a privilege. Lowering needs none, and cannot fail for a thread of our own.
// It is not the lowest priority: such a thread takes short locks too, also on a host whose
// processors are all busy.
inline void GiveWayToOthers() { (void)::setpriority(PRIO_PROCESS, 0, 10); }

// While it lives, a thread that the calling thread makes has a higher priority for the rest of its life. That takes a
// privilege when this is made, not when the thread is. Without it nothing changes.
class BornFirst {
 public:
  BornFirst() {
    const long answer = raw::Syscall(SYS_getpriority, PRIO_PROCESS, 0);
    raised_ = answer > 0 && raw::Syscall(SYS_setpriority, PRIO_PROCESS, 0, kRaised) == 0;
    before_ = kCountedFrom - answer;
  }
  ~BornFirst() {
    if (raised_) {
      (void)raw::Syscall(SYS_setpriority, PRIO_PROCESS, 0, before_);
    }
  }
  BornFirst(const BornFirst&) = delete;
  BornFirst& operator=(const BornFirst&) = delete;

 private:
  static constexpr long kRaised = -15;
  static constexpr long kCountedFrom = 20;  // the system call answers 20 less the priority: 1 to 40
  long before_ = 0;
  bool raised_ = false;
};

}  // namespace coffer
