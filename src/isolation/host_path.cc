// SPDX-License-Identifier: Apache-2.0
#include "isolation/host_path.h"

#include <dirent.h>
#include <errno.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

// Directories whose aliases (bind mounts under another name) are refused as they are themselves.
constexpr std::array<const char*, 14> kNeverByAnyName = {
    "/",    "/etc",  "/home", "/root", "/var", "/usr",  "/boot",
    "/dev", "/proc", "/sys",  "/run",  "/mnt", "/data", "/srv",
};

bool PseudoFileSystem(long type) {
  switch (static_cast<unsigned long>(type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
    case NSFS_MAGIC:
    case BINFMTFS_MAGIC:
      return true;
    default:
      return false;
  }
}

Status CheckNotAlias(const std::string& path, const struct stat& info) {
  for (const char* broad : kNeverByAnyName) {
    struct stat other;
    if (::stat(broad, &other) == 0 && other.st_dev == info.st_dev && other.st_ino == info.st_ino) {
      return Refused("policy.path.broad", fmt::format("{} is {} under another name", path, broad),
                     "name the directory the call needs, not more");
    }
  }
  return {};
}

Error OpenError(const std::string& path, Error error) {
  error.kind = ErrorKind::kRefused;
  error.code = "policy.path";
  if (error.sys_errno == ELOOP) {
    error.code = "policy.path.link";
    error.message = fmt::format("{} is a symbolic link, or lies behind one", path);
    char* real = ::realpath(path.c_str(), nullptr);
    error.hint =
        real != nullptr ? fmt::format("if you mean {}, name that", real) : "name the real path";
    ::free(real);
  } else if (error.sys_errno == ENOENT) {
    error.message = fmt::format("{} does not exist", path);
    error.hint = "create it first, or leave the flag out";
  } else if (error.sys_errno == ENOSYS) {
    error.kind = ErrorKind::kHost;
    error.hint = "openat2 needs Linux 5.6 or newer";
  }
  return error;
}

}  // namespace

Result<std::string> CleanPath(std::string_view given) {
  if (given.empty()) {
    return Refused("policy.path", "an empty path");
  }
  for (const char c : given) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return Refused("policy.path", "a path with a control character in it", "rename the file");
    }
  }
  std::string whole;
  if (given.front() != '/') {
    std::array<char, 4096> cwd{};
    const long got = raw::Syscall(SYS_getcwd, raw::Arg(cwd.data()), cwd.size());
    if (got <= 0 || cwd[0] != '/') {
      return HostFault("policy.path.cwd", "the current directory is gone",
                       "change to a directory that exists");
    }
    whole = cwd.data();
    whole += '/';
  }
  whole += given;
  std::string clean;
  for (size_t at = 0; at < whole.size();) {
    const size_t end = std::min(whole.find('/', at), whole.size());
    const std::string_view part = std::string_view(whole).substr(at, end - at);
    if (part == "..") {
      return Refused("policy.path.dotdot", fmt::format("\"..\" in {}", given),
                     "write the path without \"..\"");
    }
    if (!part.empty() && part != ".") {
      clean += '/';
      clean += part;
    }
    at = end + 1;
  }
  return clean.empty() ? std::string("/") : clean;
}

Result<HostPath> OpenHostPath(std::string_view given, policy::Access access, Breadth breadth) {
  HostPath opened;
  TRY_ASSIGN(opened.path, CleanPath(given));
  const auto reason =
      breadth == Breadth::kNarrow ? policy::OverBroadReason(opened.path) : std::nullopt;
  if (reason) {
    return Refused("policy.path.broad", *reason, "name the directory the call needs, not more");
  }
  Result<UniqueFd> fd = sys::OpenNoLinks(AT_FDCWD, opened.path, O_PATH);
  if (!fd.ok()) {
    return OpenError(opened.path, std::move(fd.error()));
  }
  opened.fd = std::move(fd).value();
  struct stat info;
  struct statfs file_system;
  if (::fstat(opened.fd.get(), &info) != 0 || ::fstatfs(opened.fd.get(), &file_system) != 0) {
    return HostFault("policy.path", fmt::format("cannot look at {}", opened.path));
  }
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
    return Refused("policy.path.kind", fmt::format("{} is a socket, fifo or device", opened.path),
                   "only files and directories can be brought into a boundary");
  }
  if (PseudoFileSystem(file_system.f_type)) {
    return Refused("policy.path.kind",
                   fmt::format("{} is on a pseudo file system of the kernel", opened.path));
  }
  if (access == policy::Access::kWrite &&
      static_cast<unsigned long>(file_system.f_type) == FUSE_SUPER_MAGIC) {
    return Refused(
        "policy.path.remote",
        fmt::format("{} is on a FUSE file system, whose far end is unknown", opened.path),
        "write to a local directory and copy from there");
  }
  if (breadth == Breadth::kNarrow) {
    TRY(CheckNotAlias(opened.path, info));
  }
  opened.directory = S_ISDIR(info.st_mode);
  opened.dev = info.st_dev;
  opened.ino = info.st_ino;
  opened.owner = info.st_uid;
  opened.group = info.st_gid;
  opened.size = static_cast<uint64_t>(info.st_size);
  return opened;
}

Result<std::vector<std::string>> FindFifos(const HostPath& root) {
  std::vector<std::string> fifos;
  std::vector<std::string> pending = {""};
  size_t scanned = 0;
  while (!pending.empty()) {
    const std::string here = std::move(pending.back());
    pending.pop_back();
    Result<UniqueFd> dir = sys::OpenAt(root.fd.get(), here.empty() ? "." : here,
                                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (!dir.ok()) {
      continue;  // unreadable for us: as root nothing is, as a user the boundary cannot read it either
    }
    TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir->get()));
    scanned += entries.size();
    if (scanned > kMaxScanned) {
      return Refused("policy.path.size",
                     fmt::format("{} holds too many files to be checked", root.path),
                     "name a smaller directory");
    }
    for (const sys::DirEntry& entry : entries) {
      const std::string path = here.empty() ? entry.name : here + "/" + entry.name;
      if (entry.type == DT_DIR) {
        pending.push_back(path);
      } else if (entry.type == DT_FIFO) {
        fifos.push_back(path);
      }
    }
    if (fifos.size() > kMaxFifos) {
      return Refused("policy.path.fifo",
                     fmt::format("{} holds more than {} fifos", root.path, kMaxFifos));
    }
  }
  return fifos;
}

}  // namespace coffer::isolation
