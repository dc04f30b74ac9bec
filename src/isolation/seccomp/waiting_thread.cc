// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/waiting_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "base/sys.h"

namespace coffer::isolation {

using raw::Arg;
using raw::Syscall;

namespace {

// PIDFD_THREAD, Linux 6.9: a descriptor of a thread that leads no process.
constexpr long kPidfdThread = O_EXCL;

// "Name:\t<16 hexadecimal digits>" in /proc/<pid>/status; 0 if it is not there.
uint64_t SignalSet(const std::string& status, const char* name) {
  const size_t at = status.find(name);
  return at == std::string::npos ? 0
                                 : std::strtoull(status.c_str() + at + strlen(name), nullptr, 16);
}

}  // namespace

bool CanDuplicateDescriptors() {
  const long self = Syscall(SYS_pidfd_open, ::getpid(), 0);
  if (self < 0) {
    return false;
  }
  const UniqueFd held(static_cast<int>(self));
  const UniqueFd copy(static_cast<int>(Syscall(SYS_pidfd_getfd, self, self, 0)));
  const Result<std::string> yama = sys::ReadFile("/proc/sys/kernel/yama/ptrace_scope");
  return copy.valid() && !(yama.ok() && yama->starts_with('3'));
}

bool AnswerCall(int notify_fd, uint64_t id, long answer) {
  // As large as any kernel's: what lies behind the part that this program knows is zero.
  union {
    seccomp_notif_resp response;
    char room[256];
  } sent{};
  sent.response.id = id;
  sent.response.error = static_cast<int>(answer);
  return Syscall(SYS_ioctl, notify_fd, static_cast<long>(SECCOMP_IOCTL_NOTIF_SEND), Arg(&sent)) >=
         0;
}

WaitingThread::WaitingThread(int notify_fd, const seccomp_notif& request)
    : notify_fd_(notify_fd),
      id_(request.id),
      thread_(static_cast<pid_t>(request.pid)),
      proc_("/proc/" + std::to_string(request.pid) + "/") {}

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

long WaitingThread::Duplicate(int fd) const {
  // The table of a thread is its leader's, or if it made one of its own, as much the payload's.
  long process = Syscall(SYS_pidfd_open, thread_, 0);
  if (process == -EINVAL || process == -ENOENT) {
    process = Syscall(SYS_pidfd_open, thread_, kPidfdThread);
  }
  if (process == -EINVAL) {
    const Result<std::string> status = sys::ReadFile(proc_ + "status");
    const size_t at = status.ok() ? status->find("\nTgid:\t") : std::string::npos;
    process = at == std::string::npos
                  ? -ESRCH
                  : Syscall(SYS_pidfd_open, std::atoi(status->c_str() + at + 7), 0);
  }
  if (process < 0) {
    return process;
  }
  const UniqueFd held(static_cast<int>(process));
  return Syscall(SYS_pidfd_getfd, held.get(), fd, 0);
}

bool WaitingThread::Write(uint64_t address, const void* bytes, size_t size) {
  const Result<UniqueFd> memory = sys::Open(proc_ + "mem", O_WRONLY);
  return memory.ok() && StillWaits() &&
         Syscall(SYS_pwrite64, memory->get(), Arg(bytes), static_cast<long>(size),
                 static_cast<long>(address)) == static_cast<long>(size);
}

bool WaitingThread::StillWaits() const {
  uint64_t id = id_;
  return Syscall(SYS_ioctl, notify_fd_, static_cast<long>(SECCOMP_IOCTL_NOTIF_ID_VALID),
                 Arg(&id)) >= 0;
}

bool WaitingThread::HasSignal() const {
  const Result<std::string> status = sys::ReadFile(proc_ + "status");
  if (!status.ok()) {
    return false;
  }
  const uint64_t pending = SignalSet(*status, "\nSigPnd:\t") | SignalSet(*status, "\nShdPnd:\t");
  return (pending & ~SignalSet(*status, "\nSigBlk:\t") & SignalSet(*status, "\nSigCgt:\t")) != 0;
}

}  // namespace coffer::isolation
