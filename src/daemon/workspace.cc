// SPDX-License-Identifier: Apache-2.0
#include "daemon/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ids.h"
#include "base/remove_tree.h"
#include "base/sys.h"
#include "limits/tree_scan.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

// A path of a request has at most so many bytes (gateway/service.h), so at most half as many parts.
constexpr size_t kLongestPath = 1024;
constexpr int kDeepest = static_cast<int>(kLongestPath / 2);
constexpr Nanos kScanTime = std::chrono::seconds(2);

Error NotThere(const std::string& path) {
  return {ErrorKind::kNotFound, "file.unknown", fmt::format("there is no file {}", path), "", 0};
}

Error ClosedByItsMode() {
  return {ErrorKind::kRefused, "file.mode",
          "the mode of this file, or of a directory above it, does not let its owner in",
          "a call in this session can change it with chmod", EACCES};
}

Error NameTaken(const char* why) {
  return {ErrorKind::kRefused, kFileConflict, why, "remove what is there, or use another name", 0};
}

// Beneath `root` and nowhere else, whatever links lie on the way.
Result<UniqueFd> OpenBeneath(int root, const std::string& path, int flags, mode_t mode = 0) {
  open_how how{};
  // A call may have made a fifo or a terminal there: opening it must neither wait nor become our
  // terminal. openat2 refuses these two flags beside O_PATH.
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC) |
              ((flags & O_PATH) != 0 ? 0 : uint64_t{O_NONBLOCK | O_NOCTTY});
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  const long fd = Syscall(SYS_openat2, root, Arg(path.c_str()), Arg(&how), sizeof(how));
  if (fd == -ENOENT || fd == -ELOOP || fd == -EXDEV || fd == -ENOTDIR) {
    return NotThere(path);
  }
  if (fd == -EACCES) {
    return ClosedByItsMode();
  }
  if (fd < 0) {
    return sys::ErrnoError("file.open", "cannot open a file of the workspace", fd);
  }
  return UniqueFd(static_cast<int>(fd));
}

gateway::FileView WorkspaceFileView(const std::string& path, const struct stat& info) {
  gateway::FileView view;
  view.path = path;
  view.size = static_cast<uint64_t>(info.st_size);
  view.modified_at = std::chrono::seconds(info.st_mtim.tv_sec) + Nanos(info.st_mtim.tv_nsec);
  return view;
}

constexpr mode_t kOurs = 0700;

// A directory of the workspace, also one that a call has closed to every user.
Result<UniqueFd> OpenInner(int dir, const std::string& name) {
  Result<UniqueFd> inner = OpenBeneath(dir, name, O_RDONLY | O_DIRECTORY);
  if (inner.ok() || inner.error().sys_errno != EACCES) {
    return inner;
  }
  TRY_ASSIGN(const UniqueFd closed, OpenBeneath(dir, name, O_PATH | O_DIRECTORY));
  const std::string self = fmt::format("/proc/self/fd/{}", closed.get());
  (void)Syscall(SYS_fchmodat, AT_FDCWD, Arg(self.c_str()), kOurs);  // else it does not open
  return OpenBeneath(dir, name, O_RDONLY | O_DIRECTORY);
}

// Visits the regular files below `dir` until `visit` says that it has enough.
Result<bool> Walk(int dir, const std::string& prefix, int depth,
                  const std::function<bool(int, const std::string&, const std::string&)>& visit) {
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir));
  for (const sys::DirEntry& entry : entries) {
    if (prefix.size() + entry.name.size() > kLongestPath) {
      continue;  // no request can name it
    }
    if (entry.type == DT_DIR && depth > 1) {
      const Result<UniqueFd> inner = OpenInner(dir, entry.name);
      if (!inner.ok() && inner.error().kind != ErrorKind::kNotFound) {
        return inner.error();
      }
      if (inner.ok()) {
        TRY_ASSIGN(const bool more,
                   Walk(inner->get(), prefix + entry.name + "/", depth - 1, visit));
        if (!more) {
          return false;
        }
      }
    } else if (entry.type == DT_REG && !visit(dir, entry.name, prefix)) {
      return false;
    }
  }
  return true;
}

Result<UniqueFd> OpenRoot(const std::string& path) {
  // No call can put something else in its place; it can only close it.
  (void)Syscall(SYS_fchmodat, AT_FDCWD, Arg(path.c_str()), kOurs);
  return sys::OpenNoLinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
}

}  // namespace

Status Workspace::Make() const { return sys::MakeDirAt(AT_FDCWD, path_, 0700); }

Status Workspace::Remove() const {
  Result<UniqueFd> root = OpenRoot(path_);
  if (!root.ok()) {
    return root.error().sys_errno == ENOENT ? Status() : Status(std::move(root.error()));
  }
  TRY(EmptyTree(root->get()));
  return sys::RemoveDirAt(AT_FDCWD, path_);
}

bool Workspace::Exists() const {
  struct stat info{};
  return ::lstat(path_.c_str(), &info) == 0;
}

Result<Workspace::Listing> Workspace::List(const std::string& wanted, size_t skip,
                                           size_t limit) const {
  TRY_ASSIGN(const UniqueFd root, OpenRoot(path_));
  Listing listing;
  const auto visit = [&](int dir, const std::string& name, const std::string& prefix) {
    struct stat info{};
    if (!(prefix + name).starts_with(wanted) ||
        ::fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
      return true;
    }
    if (skip > 0) {
      --skip;
      return true;
    }
    listing.more = listing.files.size() == limit;
    if (!listing.more) {
      listing.files.push_back(WorkspaceFileView(prefix + name, info));
    }
    return !listing.more;
  };
  TRY_ASSIGN([[maybe_unused]] const bool all, Walk(root.get(), "", kDeepest, visit));
  return listing;
}

Result<UniqueFd> Workspace::OpenToRead(const std::string& path, gateway::FileView* view) const {
  TRY_ASSIGN(const UniqueFd root, OpenRoot(path_));
  TRY_ASSIGN(UniqueFd file, OpenBeneath(root.get(), path, O_RDONLY));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return NotThere(path);
  }
  *view = WorkspaceFileView(path, info);
  return file;
}

Result<Workspace::Writing> Workspace::OpenToWrite(const std::string& path) const {
  TRY_ASSIGN(UniqueFd directory, OpenRoot(path_));
  std::string rest = path;
  for (size_t slash = rest.find('/'); slash != std::string::npos; slash = rest.find('/')) {
    const std::string part = rest.substr(0, slash);
    const Status made = sys::MakeDirAt(directory.get(), part, 0700);
    if (!made.ok() && made.error().sys_errno != EEXIST) {
      return made.error().sys_errno == EACCES ? ClosedByItsMode() : made.error();
    }
    Result<UniqueFd> inner = OpenBeneath(directory.get(), part, O_RDONLY | O_DIRECTORY);
    if (!inner.ok()) {
      return inner.error().kind == ErrorKind::kNotFound
                 ? NameTaken("a part of the path is not a directory")
                 : inner.error();
    }
    directory = std::move(*inner);
    rest.erase(0, slash + 1);
  }
  if (struct stat info{};
      ::fstatat(directory.get(), rest.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(info.st_mode)) {
    return NameTaken("there is a directory of this name");
  }
  Writing writing;
  TRY_ASSIGN(const std::string id, NewId());
  writing.temporary = ".coffer-upload-" + id;
  writing.name = rest;
  TRY_ASSIGN(writing.file,
             OpenBeneath(directory.get(), writing.temporary, O_WRONLY | O_CREAT | O_EXCL, 0600));
  writing.directory = std::move(directory);
  return writing;
}

Status Workspace::Commit(const Writing& writing) const {
  const long moved = Syscall(SYS_renameat2, writing.directory.get(), Arg(writing.temporary.c_str()),
                             writing.directory.get(), Arg(writing.name.c_str()), 0);
  if (moved == -EISDIR) {
    return NameTaken("there is a directory of this name");
  }
  if (moved == -ENOENT) {
    return NameTaken("a call removed the directory, or the file, while it arrived");
  }
  return moved < 0 ? Status(sys::ErrnoError("file.write", "cannot put a file in its place", moved))
                   : Status();
}

void Workspace::Discard(const Writing& writing) const {
  (void)Syscall(SYS_unlinkat, writing.directory.get(), Arg(writing.temporary.c_str()), 0);
}

Status Workspace::RemoveFile(const std::string& path) const {
  TRY_ASSIGN(UniqueFd directory, OpenRoot(path_));
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) {
    TRY_ASSIGN(directory,
               OpenBeneath(directory.get(), path.substr(0, slash), O_RDONLY | O_DIRECTORY));
  }
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const long gone = Syscall(SYS_unlinkat, directory.get(), Arg(name.c_str()), 0);
  if (gone == -ENOENT || gone == -EISDIR) {
    return NotThere(path);
  }
  if (gone == -EACCES) {
    return ClosedByItsMode();
  }
  return gone < 0 ? Status(sys::ErrnoError("file.remove", "cannot remove a file", gone)) : Status();
}

Result<SessionSpace::Room> Workspace::Used() const {
  TRY_ASSIGN(const UniqueFd root, OpenRoot(path_));
  TRY_ASSIGN(const limits::DiskUse use, limits::ScanDisk(root.get(), kScanTime));
  if (!use.complete()) {
    return Refused("file.uncounted", "what the session holds cannot be counted",
                   "remove files, or open directories that are closed (chmod u+rwx), with a call");
  }
  return SessionSpace::Room{use.bytes, use.inodes};
}

Result<Workspace::Volume> Workspace::LookAtVolume() const {
  struct statvfs info{};
  if (::statvfs(path_.c_str(), &info) != 0) {
    return HostFault("file.open", "cannot look at a workspace");
  }
  const uint64_t blocks = info.f_blocks;
  return Volume{{blocks * info.f_frsize, info.f_files},
                {(blocks - info.f_bavail) * info.f_frsize, info.f_files - info.f_favail}};
}

}  // namespace coffer::daemon
