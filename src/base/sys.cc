// SPDX-License-Identifier: Apache-2.0
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/fault.h"
#include "base/path_words.h"

namespace coffer::raw {

// Straight to the kernel, whose answer is -errno already: errno itself belongs to a thread of the C library, and a
// child that shares our memory (vfork, the network helper) must not write it.
long Syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (const int injected = fault::Next(number); injected != 0) {
    return -injected;
  }
#if defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory", "cc");
  return x0;
#elif defined(__x86_64__)
  long answer = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(answer)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return answer;
#else
#error "write the system call instruction of this architecture"
#endif
}

}  // namespace coffer::raw

namespace coffer::sys {

using raw::Arg;
using raw::Syscall;

namespace {

template <typename Call>
long RetryEintr(Call call) {
  long answer = 0;
  do {
    answer = call();
  } while (answer == -EINTR);
  return answer;
}

Result<UniqueFd> Opened(long answer, const std::string& path) {
  if (answer < 0) {
    return ErrnoError("sys.open", "cannot open " + PathInWords(path), answer);
  }
  return UniqueFd(static_cast<int>(answer));
}

}  // namespace

std::string ErrnoText(int error_number) {
  std::array<char, 128> buffer{};
  return ::strerror_r(error_number, buffer.data(), buffer.size());
}

Error ErrnoError(std::string_view code, std::string_view what, long negative_errno,
                 ErrorKind kind) {
  const int number = static_cast<int>(-negative_errno);
  return {kind, std::string(code), std::string(what) + ": " + ErrnoText(number), {}, number};
}

Result<UniqueFd> OpenAt(int dir, const std::string& path, int flags, unsigned mode) {
  return Opened(RetryEintr([&] {
                  return Syscall(SYS_openat, dir, Arg(path.c_str()), flags | O_CLOEXEC, mode);
                }),
                path);
}

Result<UniqueFd> Open(const std::string& path, int flags, unsigned mode) {
  return OpenAt(AT_FDCWD, path, flags, mode);
}

long OpenAt2(int dir, const std::string& path, int flags, uint64_t resolve) {
  constexpr int kTries = 128;
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = resolve;
  long fd = -EAGAIN;
  for (int i = 0; i < kTries && fd == -EAGAIN; ++i) {
    fd = RetryEintr(
        [&] { return Syscall(SYS_openat2, dir, Arg(path.c_str()), Arg(&how), sizeof(how)); });
  }
  return fd;
}

Result<UniqueFd> OpenNoLinks(int dir, const std::string& path, int flags) {
  return Opened(OpenAt2(dir, path, flags, RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS), path);
}

Result<std::string> ReadFd(int fd, size_t limit) {
  // Most files are small. One that is not is read in larger pieces: its calls would take longer than its bytes.
  constexpr size_t kFirst = 4096;
  constexpr size_t kMost = 64 << 10;
  std::string text;
  std::vector<char> larger;
  std::array<char, kFirst> small;
  std::span<char> buffer(small);
  for (;;) {
    const long got =
        RetryEintr([&] { return Syscall(SYS_read, fd, Arg(buffer.data()), buffer.size()); });
    if (got < 0) {
      return ErrnoError("sys.read", "cannot read", got);
    }
    if (got == 0) {
      return text;
    }
    if (text.size() + static_cast<size_t>(got) > limit) {
      return Error{ErrorKind::kHost, "sys.read.limit", "file is larger than expected", {}, EFBIG};
    }
    text.append(buffer.data(), static_cast<size_t>(got));
    if (larger.empty() && text.size() >= 4 * kFirst) {
      larger.resize(kMost);
      buffer = larger;
    }
  }
}

// A large file goes into one piece of memory of its size. The file may have become longer meanwhile, or shorter.
static Result<std::string> ReadSized(int fd, size_t size, size_t limit) {
  constexpr size_t kSmall = 16 << 10;
  if (size < kSmall || size > limit) {
    return ReadFd(fd, limit);
  }
  std::string text;
  text.reserve(size + kSmall);  // what a caller appends moves nothing
  text.resize(size);
  const long got = RetryEintr([&] { return Syscall(SYS_read, fd, Arg(text.data()), text.size()); });
  if (got < 0) {
    return ErrnoError("sys.read", "cannot read", got);
  }
  text.resize(static_cast<size_t>(got));
  TRY_ASSIGN(const std::string rest, ReadFd(fd, limit - text.size()));
  text += rest;
  return text;
}

Result<std::string> ReadFileAt(int dir, const std::string& path, size_t limit) {
  TRY_ASSIGN(UniqueFd fd, OpenAt(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (const long answer = Syscall(SYS_fstat, fd.get(), Arg(&info)); answer < 0) {
    return ErrnoError("sys.read", "cannot look at " + PathInWords(path), answer);
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorKind::kHost,
                 "sys.read.kind",
                 PathInWords(path) + " is not a regular file",
                 {},
                 EINVAL};
  }
  Result<std::string> text = ReadSized(fd.get(), static_cast<size_t>(info.st_size), limit);
  if (!text.ok()) {
    text.error().message = path + ": " + text.error().message;
  }
  return text;
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  return ReadFileAt(AT_FDCWD, path, limit);
}

Status WriteFileAt(int dir, const std::string& path, std::string_view data) {
  TRY_ASSIGN(UniqueFd fd, OpenAt(dir, path, O_WRONLY));
  const long wrote = RetryEintr([&] {
    return Syscall(SYS_write, fd.get(), Arg(data.data()), static_cast<long>(data.size()));
  });
  if (wrote < 0) {
    return ErrnoError("sys.write", "cannot write " + PathInWords(path), wrote);
  }
  if (static_cast<size_t>(wrote) != data.size()) {
    return Error{
        ErrorKind::kHost, "sys.write.short", "short write to " + PathInWords(path), {}, EIO};
  }
  return {};
}

Status WriteFile(const std::string& path, std::string_view data) {
  return WriteFileAt(AT_FDCWD, path, data);
}

Status WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const long wrote = RetryEintr(
        [&] { return Syscall(SYS_write, fd, Arg(data.data()), static_cast<long>(data.size())); });
    if (wrote < 0) {
      return ErrnoError("sys.write", "cannot write", wrote);
    }
    data.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

Result<Pipe> MakePipe(int flags) {
  int ends[2] = {-1, -1};
  const long answer = Syscall(SYS_pipe2, Arg(ends), flags | O_CLOEXEC);
  if (answer < 0) {
    return ErrnoError("sys.pipe", "cannot make a pipe", answer);
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Status MakeDirAt(int dir, const std::string& path, unsigned mode) {
  const long answer = Syscall(SYS_mkdirat, dir, Arg(path.c_str()), mode);
  if (answer < 0) {
    return ErrnoError("sys.mkdir", "cannot create directory " + PathInWords(path), answer);
  }
  return {};
}

Status MakeDirs(const std::string& path, unsigned mode) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    Status made = MakeDirAt(AT_FDCWD, path.substr(0, at), mode);
    if (!made.ok() && made.error().sys_errno != EEXIST) {
      return made;
    }
    if (at == std::string::npos) {
      return {};
    }
  }
}

Status RemoveDirAt(int dir, const std::string& path) {
  const long answer = Syscall(SYS_unlinkat, dir, Arg(path.c_str()), AT_REMOVEDIR);
  if (answer < 0) {
    return ErrnoError("sys.rmdir", "cannot remove directory " + PathInWords(path), answer);
  }
  return {};
}

Result<bool> Exists(const std::string& path) {
  struct stat info{};
  const long answer =
      Syscall(SYS_newfstatat, AT_FDCWD, Arg(path.c_str()), Arg(&info), AT_SYMLINK_NOFOLLOW);
  if (answer == 0) {
    return true;
  }
  if (answer == -ENOENT || answer == -ENOTDIR) {
    return false;
  }
  return ErrnoError("sys.access", "cannot look at " + PathInWords(path), answer);
}

Result<std::vector<DirEntry>> ListDir(int dir_fd) {
  struct LinuxDirent {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    unsigned char type;
    char name[1];
  };
  std::vector<DirEntry> entries;
  alignas(LinuxDirent) std::array<char, 8192> buffer;
  for (;;) {
    const long got = Syscall(SYS_getdents64, dir_fd, Arg(buffer.data()), buffer.size());
    if (got < 0) {
      return ErrnoError("sys.getdents", "cannot list a directory", got);
    }
    if (got == 0) {
      return entries;
    }
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const LinuxDirent*>(buffer.data() + at);
      const std::string_view name = static_cast<const char*>(entry->name);
      if (name != "." && name != "..") {
        entries.push_back({std::string(name), entry->type});
      }
      at += entry->length;
    }
  }
}

Result<std::string> ReadLinkAt(int dir, const std::string& path) {
  std::array<char, 4096> buffer;
  const long got =
      Syscall(SYS_readlinkat, dir, Arg(path.c_str()), Arg(buffer.data()), buffer.size());
  if (got < 0) {
    return ErrnoError("sys.readlink", "cannot read the link " + PathInWords(path), got);
  }
  return std::string(buffer.data(), static_cast<size_t>(got));
}

}  // namespace coffer::sys
