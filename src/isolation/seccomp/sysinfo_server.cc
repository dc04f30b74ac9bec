// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/sysinfo_server.h"

#include <errno.h>
#include <sys/sysinfo.h>

#include "isolation/seccomp/waiting_thread.h"

namespace coffer::isolation {

long SysinfoServer::Take(int notify_fd, const seccomp_notif& request) const {
  struct sysinfo figures{};
  figures.uptime =
      std::chrono::duration_cast<std::chrono::seconds>(BootTime() - began_).count() + 1;
  figures.totalram = memory_;
  figures.freeram = memory_;
  figures.procs = 1;
  figures.mem_unit = 1;
  WaitingThread caller(notify_fd, request);
  return caller.Write(request.data.args[0], &figures, sizeof(figures)) ? 0 : -EFAULT;
}

}  // namespace coffer::isolation
