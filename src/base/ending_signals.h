// SPDX-License-Identifier: Apache-2.0
//
// The signals that ask a program to end: SIGINT, SIGTERM, SIGHUP, SIGQUIT.
//
// A call blocks them from its first moment on and reads them from a signalfd. Where we wait for
// something other than that descriptor, they must be let through, or nothing but SIGKILL would end
// the wait. A boundary that was begun dies with us.
#pragma once

#include <signal.h>

namespace coffer {

inline constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// `mask` without them.
inline sigset_t WithoutEndingSignals(sigset_t mask) {
  for (const int signal : kEndingSignals) {
    sigdelset(&mask, signal);
  }
  return mask;
}

// While it lives they do what they do by default, or are ignored if the caller ignored them.
class EndingSignalsLetThrough {
 public:
  EndingSignalsLetThrough() {
    ::sigprocmask(SIG_BLOCK, nullptr, &before_);
    const sigset_t open = WithoutEndingSignals(before_);
    ::sigprocmask(SIG_SETMASK, &open, nullptr);
  }
  ~EndingSignalsLetThrough() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  EndingSignalsLetThrough(const EndingSignalsLetThrough&) = delete;
  EndingSignalsLetThrough& operator=(const EndingSignalsLetThrough&) = delete;

 private:
  sigset_t before_;
};

}  // namespace coffer
