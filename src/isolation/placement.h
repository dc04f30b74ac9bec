// SPDX-License-Identifier: Apache-2.0
//
// Where the three run that have work at the start of a call (the supervisor, init, the helper that makes the network), on a
// host with two processors. The helper takes as long as the other two together, so it gets one processor and they the
// other; later, once init has been told what to build and the supervisor has work of its own left, init gets the other one.
// Left alone, the kernel puts two on one processor while the other is idle: a twentieth of the call, twice. With three
// processors and more it finds an idle one by itself, and nothing is done.
//
// What a process starts with is inherited: init must have all its processors back before it starts anything but the helper.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace coffer::isolation {

inline constexpr int kMaskWords = 128;  // 8192 processors, as many as Linux knows

class Placement {
 public:
  // Before init is cloned: the calling thread stays on its processor, and so will what it clones. Returns the other
  // processor, or -1 if there are not exactly two; then nothing was done.
  int Gather();
  // After it: the calling thread has all its processors back. Init has not.
  void Release();
  // Lets `process`, which should be asleep, wake on the one of two processors that we are not on. Best effort.
  void SendAway(pid_t process);
  // Gives it back all that it had. Does nothing if it has all.
  Status Restore(pid_t process);
  bool narrowed() const { return narrowed_; }

 private:
  // Fills `all_`, once. False if it is not two.
  bool AreTwo();

  unsigned long all_[kMaskWords] = {};
  long bytes_ = 0;         // of `all_`, as the kernel filled it
  int two_[2] = {-1, -1};  // their numbers
  bool gathered_ = false;  // the calling thread is on one processor
  bool narrowed_ = false;  // what was cloned is
};

// Leaves `process` one processor. No heap: init uses it too.
bool MoveTo(pid_t process, int processor);

}  // namespace coffer::isolation
