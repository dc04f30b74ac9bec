// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <algorithm>
#include <iterator>

#include "base/quantity.h"
#include "base/sys.h"

namespace coffer::sys {
namespace {

using raw::Arg;
using raw::Syscall;

// Regular by name only: what is read is made at that moment, and some of it waits or is consumed by
// reading.
constexpr long kMadeByTheKernel[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,
                                     TRACEFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                                     SECURITYFS_MAGIC, BPF_FS_MAGIC};

Error NotRegular(const std::string& path, const std::string& kind) {
  return Refused("policy.file", path + " is " + kind + ", not a regular file",
                 "name a regular file");
}

Status CheckRegular(int fd, const std::string& path) {
  struct stat info{};
  if (const long answer = Syscall(SYS_fstat, fd, Arg(&info)); answer < 0) {
    return ErrnoError("sys.stat", "cannot look at " + path, answer);
  }
  if (!S_ISREG(info.st_mode)) {
    return NotRegular(path, KindOfFile(info.st_mode));
  }
  struct statfs system{};
  if (const long answer = Syscall(SYS_fstatfs, fd, Arg(&system)); answer < 0) {
    return ErrnoError("sys.stat", "cannot look at " + path, answer);
  }
  if (std::find(std::begin(kMadeByTheKernel), std::end(kMadeByTheKernel),
                static_cast<long>(system.f_type)) != std::end(kMadeByTheKernel)) {
    return NotRegular(path, "a file of the kernel");
  }
  return {};
}

}  // namespace

std::string KindOfFile(unsigned mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "a regular file";
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a fifo";
    case S_IFSOCK:
      return "a socket";
    case S_IFLNK:
      return "a link";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    default:
      return "of an unknown kind";
  }
}

Result<UniqueFd> ReopenRegular(int path_fd, const std::string& path, int flags) {
  TRY(CheckRegular(path_fd, path));
  Result<UniqueFd> opened = Open("/proc/self/fd/" + std::to_string(path_fd),
                                 (flags & ~O_NOFOLLOW) | O_NONBLOCK | O_NOCTTY);
  if (!opened.ok() && opened.error().sys_errno == ENOENT) {
    return HostFault("isolation.proc", "cannot open " + path + ": /proc is not mounted",
                     "mount /proc: coffer needs it");
  }
  if (!opened.ok()) {
    return ErrnoError("sys.open", "cannot open " + path, -opened.error().sys_errno);
  }
  return opened;
}

Result<UniqueFd> OpenRegularAt(int dir, const std::string& path, int flags) {
  TRY_ASSIGN(const UniqueFd found, OpenAt(dir, path, O_PATH | (flags & O_NOFOLLOW)));
  return ReopenRegular(found.get(), path, flags);
}

Result<UniqueFd> OpenRegular(const std::string& path, int flags) {
  return OpenRegularAt(AT_FDCWD, path, flags);
}

Result<std::string> ReadRegularAt(int dir, const std::string& path, size_t limit) {
  TRY_ASSIGN(const UniqueFd fd, OpenRegularAt(dir, path, O_RDONLY));
  struct stat info{};
  if (const long answer = Syscall(SYS_fstat, fd.get(), Arg(&info)); answer < 0) {
    return ErrnoError("sys.stat", "cannot look at " + path, answer);
  }
  if (static_cast<uint64_t>(info.st_size) > limit) {
    Error large = Refused("policy.file", path + " is larger than " + FormatSize(limit),
                          "is it the file that you meant?");
    large.sys_errno = EFBIG;
    return large;
  }
  Result<std::string> text = ReadFd(fd.get(), limit);  // it may grow meanwhile
  if (!text.ok()) {
    text.error().message = path + ": " + text.error().message;
  }
  return text;
}

Result<std::string> ReadRegular(const std::string& path, size_t limit) {
  return ReadRegularAt(AT_FDCWD, path, limit);
}

}  // namespace coffer::sys
