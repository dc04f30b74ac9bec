// SPDX-License-Identifier: Apache-2.0
//
// Where init runs while the supervisor has work of its own. Three have work at the start of a call (init, the helper that
// makes the network, the supervisor), and there may be two processors. The kernel leaves init behind the supervisor on
// one of them even once the helper has left the other, so init is sent there; a twentieth of the call. With three processors
// and more the kernel finds an idle one by itself, and nothing is done.
//
// What a process starts with is inherited: init must have all its processors back before it starts anything.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace coffer::isolation {

class Placement {
 public:
  // Lets `process`, which should be asleep, wake on the one of two processors that we are not on. Best effort.
  void SendAway(pid_t process);
  // Gives it back all that it had. Does nothing if it was not sent away.
  Status Restore(pid_t process);
  bool sent_away() const { return bytes_ > 0; }

 private:
  static constexpr int kWords = 128;  // 8192 processors, as many as Linux knows

  unsigned long all_[kWords] = {};
  long bytes_ = 0;  // of `all_`, as the kernel filled it; 0 while nothing is to be restored
};

}  // namespace coffer::isolation
