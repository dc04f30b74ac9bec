// SPDX-License-Identifier: Apache-2.0
//
// The one seam between this program and the kernel, and the only place where an errno becomes an Error.
//
// raw::Syscall and the functions built on it return the kernel's answer, or -errno. They take no locks and no
// memory, so code that runs after clone() may use them. sys:: wraps them as Results for all other code.
// In a build with COFFER_FAULT_INJECTION the seam can be told to fail the Nth call (see fault.h); in every
// other build the check does not exist.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::raw {

// The kernel's answer, or -errno. Async-signal-safe.
long Syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

template <typename T>
long Arg(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

}  // namespace coffer::raw

namespace coffer::sys {

// An Error for `negative_errno` (as raw:: returns it). The message reads "<what>: <text of the errno>".
[[gnu::cold]] Error ErrnoError(std::string_view code, std::string_view what, long negative_errno,
                               ErrorKind kind = ErrorKind::kHost);

// The text of an errno, for messages: "No such file or directory".
std::string ErrnoText(int error_number);

// openat with O_CLOEXEC always added. Retries EINTR.
Result<UniqueFd> OpenAt(int dir, const std::string& path, int flags, unsigned mode = 0);
Result<UniqueFd> Open(const std::string& path, int flags, unsigned mode = 0);

// openat2 with O_CLOEXEC, 0 mode and `resolve`: a descriptor or -errno. The kernel answers EAGAIN
// if anything on the host was renamed or mounted while it looked at a "..": it is asked again, and
// says EAGAIN only after many such answers.
long OpenAt2(int dir, const std::string& path, int flags, uint64_t resolve);

// openat2 with RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS: no component of `path` may be a link.
Result<UniqueFd> OpenNoLinks(int dir, const std::string& path, int flags);

// The whole file, at most `limit` bytes; a longer one is an error, and so is what is not a regular file. For names that
// are ours, such as /proc and cgroup files; a name from outside is read with base/regular_file.h.
Result<std::string> ReadFile(const std::string& path, size_t limit = 1 << 20);
Result<std::string> ReadFileAt(int dir, const std::string& path, size_t limit = 1 << 20);
Result<std::string> ReadFd(int fd, size_t limit = 1 << 20);

// Writes all of `data` to an existing file in one write: what kernel control files want.
Status WriteFileAt(int dir, const std::string& path, std::string_view data);
Status WriteFile(const std::string& path, std::string_view data);
Status WriteAll(int fd, std::string_view data);

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};
Result<Pipe> MakePipe(int flags = 0);  // O_CLOEXEC is always added

Status MakeDirAt(int dir, const std::string& path, unsigned mode);
// Every directory on the way that is not there yet, with `mode`; `path` is absolute.
Status MakeDirs(const std::string& path, unsigned mode);
Status RemoveDirAt(int dir, const std::string& path);
Result<bool> Exists(const std::string& path);  // does not follow a last link

// The names in a directory, without "." and "..", in no order.
struct DirEntry {
  std::string name;
  unsigned char type;  // DT_*
};
Result<std::vector<DirEntry>> ListDir(int dir_fd);

Result<std::string> ReadLinkAt(int dir, const std::string& path);

}  // namespace coffer::sys
