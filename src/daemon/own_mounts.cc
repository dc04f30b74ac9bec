// SPDX-License-Identifier: Apache-2.0
#include "daemon/own_mounts.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

namespace coffer::daemon {

Status EnterOwnMounts() {
  if (::geteuid() != 0 || raw::Syscall(SYS_unshare, CLONE_NEWNS) < 0) {
    return {};
  }
  // Only now: before, it would change the host's own mounts.
  const long apart = raw::Syscall(SYS_mount, 0, raw::Arg("/"), 0, MS_SLAVE | MS_REC, 0);
  return apart < 0 ? Status(sys::ErrnoError("daemon.mounts",
                                            "cannot keep the daemon's mounts from the host", apart))
                   : Status();
}

}  // namespace coffer::daemon
