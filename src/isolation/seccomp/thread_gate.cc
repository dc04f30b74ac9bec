// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/thread_gate.h"

#include <sched.h>

#include <algorithm>

#include "isolation/seccomp/argument_rules.h"
#include "isolation/seccomp/syscall_table.h"

namespace coffer::isolation {
namespace {

constexpr uint64_t kLookedAt = CLONE_THREAD | kNamespaceFlags;

}  // namespace

void AskForThreads(Profile& profile) {
  profile.rules.insert(profile.rules.begin(),
                       Rule{"clone", kNotify, {{0, Compare::kEqual, CLONE_THREAD, kLookedAt}}});
}

bool ThreadGate::Asks(const seccomp_data& call) {
  static const int clone_number = SyscallNumber("clone");
  return call.nr == clone_number && (call.args[0] & kLookedAt) == CLONE_THREAD;
}

bool ThreadGate::Admit() {
  if (known_ + admitted_ >= most_) {
    // The thread that asks waits, so what it made before is there.
    known_ = count_();
    admitted_ = 0;
    ++counts_;
    if (known_ >= most_) {
      ++refused_;
      return false;
    }
  }
  ++admitted_;
  return true;
}

void ThreadGate::Counted(uint64_t tasks) {
  known_ = std::max(known_ + admitted_, tasks);
  admitted_ = 0;
}

}  // namespace coffer::isolation
