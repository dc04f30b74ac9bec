// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/waiting_thread.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer::isolation {

using raw::Arg;
using raw::Syscall;

WaitingThread::WaitingThread(int notify_fd, const seccomp_notif& request)
    : notify_fd_(notify_fd), id_(request.id), proc_("/proc/" + std::to_string(request.pid) + "/") {}

std::optional<std::string> WaitingThread::Read(uint64_t address, size_t size) {
  if (!memory_.valid()) {
    Result<UniqueFd> opened = sys::Open(proc_ + "mem", O_RDONLY);
    if (!opened.ok()) {
      return std::nullopt;
    }
    memory_ = std::move(opened).value();
  }
  std::string bytes(size, '\0');
  const long got = Syscall(SYS_pread64, memory_.get(), Arg(bytes.data()), static_cast<long>(size),
                           static_cast<long>(address));
  if (got <= 0) {
    return std::nullopt;
  }
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

std::optional<std::string> WaitingThread::ReadText(uint64_t address, size_t limit) {
  std::optional<std::string> bytes = Read(address, limit);
  const size_t end = bytes ? bytes->find('\0') : std::string::npos;
  if (end == std::string::npos) {
    return std::nullopt;
  }
  bytes->resize(end);
  return bytes;
}

std::string WaitingThread::Descriptor(int fd) const {
  return fd == AT_FDCWD ? proc_ + "cwd" : proc_ + "fd/" + std::to_string(fd);
}

bool WaitingThread::StillWaits() const {
  uint64_t id = id_;
  return Syscall(SYS_ioctl, notify_fd_, static_cast<long>(SECCOMP_IOCTL_NOTIF_ID_VALID),
                 Arg(&id)) >= 0;
}

}  // namespace coffer::isolation
