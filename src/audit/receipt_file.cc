// SPDX-License-Identifier: Apache-2.0
#include "audit/receipt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/major.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>

#include "base/ids.h"
#include "base/patient_write.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "base/terminal_text.h"

namespace coffer::audit {
namespace {

using raw::Arg;
using raw::Syscall;

Error Unwritable(const std::string& path, const std::string& why) {
  return Refused("policy.receipt", fmt::format("cannot write the receipt {}: {}", path, why),
                 "nothing was run; name a file in a directory that you can write, or - for stderr");
}

Error Unwritable(const std::string& path, const Error& error) {
  Error refused =
      Unwritable(path, error.sys_errno != 0 ? sys::ErrnoText(error.sys_errno) : error.message);
  refused.sys_errno = error.sys_errno;
  return refused;
}

// The number in "-", /dev/stderr, /dev/fd/N and the like. Such names are never opened: that would
// open the pipe or the terminal once more, or, for a redirected file, follow a link of /dev that
// must not be replaced.
std::optional<int> DescriptorNamed(std::string_view path) {
  if (path == "-" || path == "/dev/stderr") {
    return STDERR_FILENO;
  }
  if (path == "/dev/stdout") {
    return STDOUT_FILENO;
  }
  for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = -1;
    if (path.starts_with(prefix)) {
      path.remove_prefix(prefix.size());
      const auto [end, problem] = std::from_chars(path.data(), path.data() + path.size(), number);
      return problem == std::errc() && end == path.data() + path.size() ? number : -1;
    }
  }
  return std::nullopt;
}

// A descriptor is the caller's if it survived exec; every descriptor of ours closes on exec.
Result<UniqueFd> TakeDescriptor(int number, const std::string& path) {
  const int flags = ::fcntl(number, F_GETFD);
  const int access = ::fcntl(number, F_GETFL);
  if (flags < 0 || access < 0 || (flags & FD_CLOEXEC) != 0) {
    return Unwritable(path, "you gave no such descriptor");
  }
  if ((access & O_PATH) != 0 || (access & O_ACCMODE) == O_RDONLY) {
    return Unwritable(path, "it is open for reading only");
  }
  pollfd reader = {number, POLLOUT, 0};
  if (::poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR) != 0) {
    return Unwritable(path, "no process reads it");
  }
  UniqueFd copy(::fcntl(number, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) {
    return Unwritable(path, "there are no more descriptors");
  }
  return copy;
}

// Devices that take a receipt without acting on it or waiting.
bool IsHarmlessDevice(const struct stat& info) {
  return S_ISCHR(info.st_mode) &&
         (info.st_rdev == makedev(MEM_MAJOR, 3) || info.st_rdev == makedev(MEM_MAJOR, 7) ||
          info.st_rdev == makedev(TTYAUX_MAJOR, 0));
}

Result<UniqueFd> MakeTemporary(int directory, const std::string& name) {
  return sys::OpenAt(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

Result<std::string> TemporaryName(const std::string& name) {
  TRY_ASSIGN(const std::string id, NewId());
  return "." + name.substr(0, 200) + "." + id;
}

// In a directory with the sticky bit another user's file cannot be replaced (inode(7)).
bool IsKeptForItsOwner(int directory, const struct stat& file) {
  struct stat above{};
  return ::geteuid() != 0 && file.st_uid != ::geteuid() &&
         Syscall(SYS_fstat, directory, Arg(&above)) == 0 && (above.st_mode & S_ISVTX) != 0 &&
         above.st_uid != ::geteuid();
}

// A receipt may take the place of an empty file and of a receipt, and of nothing else.
Status CheckReplaceable(int there, const std::string& path, const struct stat& info) {
  if (info.st_size == 0) {
    return {};
  }
  constexpr size_t kEnough = 64;  // the schema is the first member
  const Result<UniqueFd> file = sys::ReopenRegular(there, path, O_RDONLY);
  if (!file.ok()) {
    return Unwritable(path, file.error());
  }
  std::array<char, kEnough> head{};
  const long got = Syscall(SYS_pread64, file->get(), Arg(head.data()), head.size(), 0);
  const std::string_view start(head.data(), got < 0 ? 0 : static_cast<size_t>(got));
  if (start.starts_with('{') && start.find("\"coffer.receipt/") != std::string_view::npos) {
    return {};
  }
  return Refused(
      "policy.receipt",
      fmt::format("cannot write the receipt {}: that file holds something else", path),
      "nothing was run and the file is as it was; name another file, or remove it first");
}

// Shows that a file can be made there, and leaves none.
Status TryDirectory(int directory, const std::string& name) {
  TRY_ASSIGN(const std::string temporary, TemporaryName(name));
  TRY_ASSIGN(const UniqueFd file, MakeTemporary(directory, temporary));
  if (::unlinkat(directory, temporary.c_str(), 0) != 0) {
    return HostFault("audit.receipt", "a temporary file cannot be removed there");
  }
  return {};
}

}  // namespace

Result<ReceiptFile> ReceiptFile::Open(const std::string& path) {
  ReceiptFile receipt;
  receipt.path_ = path;
  if (const std::optional<int> number = DescriptorNamed(path)) {
    TRY_ASSIGN(receipt.direct_, TakeDescriptor(*number, path));
    return receipt;
  }
  const size_t slash = path.rfind('/');
  const std::string above = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  receipt.name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  if (receipt.name_.empty() || receipt.name_ == "." || receipt.name_ == "..") {
    return Unwritable(path, "it is a directory");
  }
  Result<UniqueFd> directory = sys::OpenNoLinks(AT_FDCWD, above, O_PATH | O_DIRECTORY);
  if (!directory.ok()) {
    return Unwritable(path, directory.error());
  }
  receipt.directory_ = std::move(directory).value();
  const Result<UniqueFd> there =
      sys::OpenAt(receipt.directory_.get(), receipt.name_, O_PATH | O_NOFOLLOW);
  if (there.ok()) {
    struct stat info{};
    if (const long answer = Syscall(SYS_fstat, there->get(), Arg(&info)); answer < 0) {
      return Unwritable(path, sys::ErrnoText(static_cast<int>(-answer)));
    }
    if (IsHarmlessDevice(info)) {
      Result<UniqueFd> device = sys::Open(fmt::format("/proc/self/fd/{}", there->get()),
                                          O_WRONLY | O_NONBLOCK | O_NOCTTY);
      if (!device.ok()) {
        return Unwritable(path, device.error());
      }
      receipt.direct_ = std::move(device).value();
      return receipt;
    }
    if (!S_ISREG(info.st_mode)) {
      return Unwritable(path, "it is " + sys::KindOfFile(info.st_mode));
    }
    if (IsKeptForItsOwner(receipt.directory_.get(), info)) {
      return Unwritable(path, "it belongs to another user");
    }
    TRY(CheckReplaceable(there->get(), path, info));
  } else if (there.error().sys_errno != ENOENT) {
    return Unwritable(path, there.error());
  }
  if (const Status tried = TryDirectory(receipt.directory_.get(), receipt.name_); !tried.ok()) {
    return Unwritable(path, tried.error());
  }
  return receipt;
}

Status ReceiptFile::Replace(std::string_view text) const {
  TRY_ASSIGN(const std::string temporary, TemporaryName(name_));
  TRY_ASSIGN(const UniqueFd file, MakeTemporary(directory_.get(), temporary));
  Status wrote = sys::WriteAll(file.get(), text);
  if (wrote.ok()) {
    const long renamed = Syscall(SYS_renameat, directory_.get(), Arg(temporary.c_str()),
                                 directory_.get(), Arg(name_.c_str()));
    if (renamed == 0) {
      return {};
    }
    wrote = sys::ErrnoError("audit.receipt", "cannot rename", renamed);
  }
  (void)::unlinkat(directory_.get(), temporary.c_str(), 0);
  return wrote;
}

bool ReceiptFile::NamesDescriptor(std::string_view path) {
  return DescriptorNamed(path).has_value();
}

Status ReceiptFile::Write(std::string_view json) const {
  // A payload chose names in it, and a receipt is read on a terminal.
  const std::string text = TerminalText(json, LineEnds::kKeep);
  Status wrote = direct_.valid() ? sys::WritePatiently(direct_.get(), text) : Replace(text);
  if (!wrote.ok()) {
    wrote.error().code = "audit.receipt";
    wrote.error().message =
        fmt::format("cannot write the receipt {}: {}", path_, wrote.error().message);
  }
  return wrote;
}

}  // namespace coffer::audit
