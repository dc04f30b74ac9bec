// SPDX-License-Identifier: Apache-2.0
#include "base/remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdint>
#include <vector>

#include "base/sys.h"

namespace coffer {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr unsigned kOurs = 0700;

Error CannotRemove(long negative_errno) {
  return sys::ErrnoError("sys.remove", "cannot remove a directory that a call has left",
                         negative_errno);
}

// A directory for reading, also one that is closed to its owner.
Result<UniqueFd> OpenInside(int parent, const std::string& name) {
  TRY_ASSIGN(const UniqueFd place, sys::OpenAt(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  const std::string self = "/proc/self/fd/" + std::to_string(place.get());
  // What cannot be changed may be open as it is; if it is not, opening or removing says so.
  (void)Syscall(SYS_fchmodat, AT_FDCWD, Arg(self.c_str()), kOurs);
  return sys::OpenAt(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

class Remover {
 public:
  explicit Remover(int top) : top_(top) {}

  Status Run() {
    // Every round empties the directories that the round before has moved up.
    for (;;) {
      TRY_ASSIGN(const UniqueFd listing, sys::OpenAt(top_, ".", O_RDONLY | O_DIRECTORY));
      TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(listing.get()));
      if (entries.empty()) {
        return {};
      }
      for (const sys::DirEntry& entry : entries) {
        TRY(RemoveEntry(entry.name));
      }
    }
  }

 private:
  Status RemoveEntry(const std::string& name) {
    TRY_ASSIGN(const bool gone, Unlink(top_, name));
    if (gone) {
      return {};
    }
    Result<UniqueFd> dir = OpenInside(top_, name);
    if (!dir.ok()) {
      return std::move(dir.error());
    }
    TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir->get()));
    for (const sys::DirEntry& entry : entries) {
      TRY_ASSIGN(const bool removed, Unlink(dir->get(), entry.name));
      if (!removed) {
        TRY(MoveUp(dir->get(), entry.name));
      }
    }
    return sys::RemoveDirAt(top_, name);
  }

  // True if it was no directory or an empty one, and is gone.
  static Result<bool> Unlink(int dir, const std::string& name) {
    long gone = Syscall(SYS_unlinkat, dir, Arg(name.c_str()), 0);
    if (gone == -EISDIR || gone == -EPERM) {
      gone = Syscall(SYS_unlinkat, dir, Arg(name.c_str()), AT_REMOVEDIR);
    }
    if (gone == 0 || gone == -ENOENT) {
      return true;
    }
    if (gone == -ENOTEMPTY || gone == -EEXIST) {
      return false;
    }
    return CannotRemove(gone);
  }

  // A directory that moves needs its own write permission as well, because its ".." changes.
  Status MoveUp(int dir, const std::string& name) {
    TRY_ASSIGN(const UniqueFd opened, OpenInside(dir, name));
    for (;;) {
      const std::string up = ".removed-" + std::to_string(next_++);
      // RENAME_NOREPLACE, because the payload may have chosen any names.
      const long moved = Syscall(SYS_renameat2, dir, Arg(name.c_str()), top_, Arg(up.c_str()), 1);
      if (moved == 0) {
        return {};
      }
      if (moved != -EEXIST) {
        return CannotRemove(moved);
      }
    }
  }

  int top_;
  uint64_t next_ = 0;
};

}  // namespace

Status EmptyTree(int dir) { return Remover(dir).Run(); }

Status RemoveTree(int parent, const std::string& name) {
  const long gone = Syscall(SYS_unlinkat, parent, Arg(name.c_str()), 0);
  if (gone == 0 || gone == -ENOENT) {
    return {};
  }
  TRY_ASSIGN(const UniqueFd top, OpenInside(parent, name));
  TRY(EmptyTree(top.get()));
  return sys::RemoveDirAt(parent, name);
}

}  // namespace coffer
