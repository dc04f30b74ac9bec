// SPDX-License-Identifier: Apache-2.0
#include "call/run/caught_signals.h"

#include <signal.h>
#include <sys/signalfd.h>

namespace coffer::call {

Result<UniqueFd> CatchSignals() {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH}) {
    sigaddset(&caught, signal);
  }
  sigset_t blocked = caught;
  sigaddset(&blocked, SIGPIPE);  // a reader that went away shows as EPIPE
  sigaddset(&blocked, SIGTTOU);  // restoring our terminal from the background must not stop us
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  // If our parent ignored it, the kernel would reap our children before we could ask how they ended.
  ::signal(SIGCHLD, SIG_DFL);
  const int fd = ::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) {
    return HostFault("internal.signals", "cannot watch for signals");
  }
  return UniqueFd(fd);
}

}  // namespace coffer::call
