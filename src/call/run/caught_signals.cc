// SPDX-License-Identifier: Apache-2.0
#include "call/run/caught_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "base/ending_signals.h"
#include "base/sys.h"

namespace coffer::call {

Result<CaughtSignals> CatchSignals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : kEndingSignals) {
    sigaddset(&ending, signal);
  }
  // These are passed on to the command; they do not end a start (`ending` does).
  sigset_t caught = ending;
  for (const int signal : {SIGUSR1, SIGUSR2, SIGWINCH}) {
    sigaddset(&caught, signal);
  }
  sigset_t blocked = caught;
  sigaddset(&blocked, SIGPIPE);  // a reader that went away shows as EPIPE
  sigaddset(&blocked, SIGTTOU);  // restoring our terminal from the background must not stop us
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  // If our parent ignored it, the kernel would reap our children before we could ask how they ended.
  ::signal(SIGCHLD, SIG_DFL);
  CaughtSignals signals;
  signals.all = UniqueFd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  signals.ending = UniqueFd(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.all || !signals.ending) {
    return HostFault("internal.signals", "cannot watch for signals");
  }
  return signals;
}

int TakeEndingSignal(const CaughtSignals& signals) {
  signalfd_siginfo info{};
  const long got = raw::Syscall(SYS_read, signals.ending.get(), raw::Arg(&info), sizeof(info));
  return got == static_cast<long>(sizeof(info)) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace coffer::call
