// SPDX-License-Identifier: Apache-2.0
#include "isolation/host_path.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "base/path_words.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "isolation/home_directories.h"

namespace coffer::isolation {
namespace {

// Directories whose aliases (bind mounts under another name) are refused as they are themselves.
constexpr std::array<const char*, 14> kNeverByAnyName = {
    "/",    "/etc",  "/home", "/root", "/var", "/usr",  "/boot",
    "/dev", "/proc", "/sys",  "/run",  "/mnt", "/data", "/srv",
};

// Views of the kernel, and pools of the host: a file of hugetlbfs takes huge pages, which no memory cgroup counts.
bool PseudoFileSystem(long type) {
  constexpr unsigned long kConfigfs = 0x62656570;       // fs/configfs/mount.c
  constexpr unsigned long kFuseControl = 0x65735543;    // fs/fuse/control.c
  constexpr unsigned long kMessageQueues = 0x19800202;  // ipc/mqueue.c
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
    case HUGETLBFS_MAGIC:
    case EFIVARFS_MAGIC:
    case PSTOREFS_MAGIC:
    case RDTGROUP_SUPER_MAGIC:
    case SELINUX_MAGIC:
    case SMACK_MAGIC:
    case AAFS_MAGIC:
    case BINDERFS_SUPER_MAGIC:
    case kConfigfs:
    case kFuseControl:
    case kMessageQueues:
      return true;
    default:
      return false;
  }
}

Error TooBroad(std::string message) {
  return Refused("policy.path.broad", std::move(message),
                 "name the directory the call needs, not more");
}

bool SameDirectory(const char* name, const HostPath& path) {
  struct stat other;
  return ::stat(name, &other) == 0 && other.st_dev == path.dev && other.st_ino == path.ino;
}

Error OpenError(const std::string& path, Error error) {
  if (error.sys_errno == EMFILE || error.sys_errno == ENFILE || error.sys_errno == ENOMEM) {
    error.kind = ErrorKind::kHost;  // nothing is wrong with the path
    return error;
  }
  error.kind = ErrorKind::kRefused;
  error.code = "policy.path";
  if (error.sys_errno == ELOOP) {
    error.code = "policy.path.link";
    error.message = fmt::format("{} is a symbolic link, or lies behind one", PathInWords(path));
    char* real = ::realpath(path.c_str(), nullptr);
    error.hint = real != nullptr ? fmt::format("if you mean {}, name that", PathInWords(real))
                                 : "name the real path";
    ::free(real);
  } else if (error.sys_errno == ENOENT) {
    error.message = fmt::format("{} does not exist", PathInWords(path));
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
      return Refused("policy.path.dotdot",
                     fmt::format("\"..\" in {}", PathInWords(std::string(given))),
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

std::string_view PathClassName(PathClass path_class) {
  return path_class == PathClass::kSystem ? "system" : "caller";
}

std::string_view BindReasonName(BindReason reason) {
  switch (reason) {
    case BindReason::kRuntime:
      return "runtime";
    case BindReason::kProgram:
      return "program";
    case BindReason::kScript:
      return "script";
    case BindReason::kLoader:
      return "loader";
    case BindReason::kLibrary:
      return "library";
    case BindReason::kMount:
      return "mount";
    case BindReason::kInput:
      return "input";
    case BindReason::kWorkspace:
      return "workspace";
  }
  return "unknown";
}

Result<HostPath> ExamineHostPath(std::string path, BindReason reason, SystemPaths& system) {
  HostPath opened;
  opened.path = std::move(path);
  opened.reason = reason;
  Result<UniqueFd> fd = sys::OpenNoLinks(AT_FDCWD, opened.path, O_PATH);
  if (!fd.ok()) {
    return OpenError(opened.path, std::move(fd.error()));
  }
  opened.fd = std::move(fd).value();
  struct stat info;
  struct statfs file_system;
  if (::fstat(opened.fd.get(), &info) != 0 || ::fstatfs(opened.fd.get(), &file_system) != 0) {
    return HostFault("policy.path", fmt::format("cannot look at {}", PathInWords(opened.path)));
  }
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
    return Refused("policy.path.kind",
                   fmt::format("{} is a socket, fifo or device", PathInWords(opened.path)),
                   "only files and directories can be brought into a boundary");
  }
  if (PseudoFileSystem(file_system.f_type)) {
    return Refused("policy.path.kind", fmt::format("{} is on a pseudo file system of the kernel",
                                                   PathInWords(opened.path)));
  }
  opened.directory = S_ISDIR(info.st_mode);
  opened.dev = info.st_dev;
  opened.ino = info.st_ino;
  opened.owner = info.st_uid;
  opened.group = info.st_gid;
  opened.size = static_cast<uint64_t>(info.st_size);
  opened.path_class = system.IsSystem(opened.path, info) ? PathClass::kSystem : PathClass::kCaller;
  return opened;
}

Status CheckNotBroad(const HostPath& path) {
  if (auto reason = policy::OverBroadReason(path.path)) {
    return TooBroad(std::move(*reason));
  }
  for (const char* broad : kNeverByAnyName) {
    if (SameDirectory(broad, path)) {
      return TooBroad(fmt::format("{} is {} under another name", PathInWords(path.path), broad));
    }
  }
  if (path.directory) {
    const char* const given = ::getenv("HOME");
    for (const std::string& home : {OwnHome(), std::string(given == nullptr ? "" : given)}) {
      if (home.starts_with('/') && SameDirectory(home.c_str(), path)) {
        return TooBroad(fmt::format("{} is a whole home directory", PathInWords(path.path)));
      }
    }
  }
  return {};
}

Breadth BreadthOf(const policy::Mount& mount) {
  return mount.dangerous ? Breadth::kAny : mount.system ? Breadth::kSystem : Breadth::kNarrow;
}

Status CheckNotSystem(const HostPath& path) {
  const bool system = IsSystemDirectory(path.path, path.owner) ||
                      (path.directory && IsSystemDirectory(path.fd.get(), path.owner));
  if (!system) {
    return {};
  }
  return Refused(
      "policy.path.system",
      fmt::format("{} belongs to the system, and writing there changes the host",
                  PathInWords(path.path)),
      "name a directory of your own; if it must be this one: `coffer run --dangerously-rw`, or "
      "dangerously_host with a reason in a manifest");
}

Status CheckToolMayWrite(const HostPath& path, const policy::Mount& mount) {
  if (mount.access != policy::Access::kWrite || mount.dangerous || !IsRootOwner(path.owner)) {
    return {};
  }
  return Refused(
      "policy.path.root",
      fmt::format("{} is root's, and so would be every file that the tool writes there",
                  PathInWords(path.path)),
      "give the directory to a user of its own (chown); or write dangerously_host with a reason");
}

Result<HostPath> OpenHostPath(std::string_view given, policy::Access access, Breadth breadth,
                              BindReason reason) {
  TRY_ASSIGN(std::string clean, CleanPath(given));
  if (breadth != Breadth::kAny) {
    // By name first: a broad path that is a link is called broad.
    if (auto broad = policy::OverBroadReason(clean)) {
      return TooBroad(std::move(*broad));
    }
  }
  SystemPaths system;
  TRY_ASSIGN(HostPath opened, ExamineHostPath(std::move(clean), reason, system));
  struct statfs file_system;
  if (access == policy::Access::kWrite && ::fstatfs(opened.fd.get(), &file_system) == 0 &&
      static_cast<unsigned long>(file_system.f_type) == FUSE_SUPER_MAGIC) {
    return Refused("policy.path.remote",
                   fmt::format("{} is on a FUSE file system, and what serves it is unknown",
                               PathInWords(opened.path)),
                   "write to a local directory and copy from there");
  }
  if (breadth != Breadth::kAny) {
    TRY(CheckNotBroad(opened));
  }
  if (breadth == Breadth::kNarrow && access == policy::Access::kWrite) {
    TRY(CheckNotSystem(opened));
  }
  return opened;
}

Result<UniqueFd> OpenForReading(const HostPath& path) {
  if (path.directory) {
    return Refused("policy.path.kind", fmt::format("{} is a directory", PathInWords(path.path)),
                   "use --ro for a directory");
  }
  return sys::ReopenRegular(path.fd.get(), path.path, O_RDONLY);
}

}  // namespace coffer::isolation
