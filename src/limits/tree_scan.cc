// SPDX-License-Identifier: Apache-2.0
#include "limits/tree_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

// Where an entry lies: by the id of its mount. One overlayfs has several device numbers, where its layers do.
uint64_t PlaceOf(const struct statx& info) {
  if ((info.stx_mask & STATX_MNT_ID) != 0) {
    return info.stx_mnt_id;
  }
  return ::makedev(info.stx_dev_major, info.stx_dev_minor);  // before Linux 5.8
}

long Look(int dir, const char* name, int flags, struct statx& info) {
  return Syscall(SYS_statx, dir, Arg(name), flags, STATX_BASIC_STATS | STATX_MNT_ID, Arg(&info));
}

// A placeholder of ours (call/run/placeholder.h), known by its mode.
bool KeepsANameFree(const struct statx& info) {
  const unsigned mode = info.stx_mode & 07777;
  return S_ISDIR(info.stx_mode) ? mode == (S_ISVTX | 0555) : mode == (S_ISVTX | 0444);
}

class Scanner {
 public:
  Scanner(const struct statx& top, Nanos budget, const VisitEntry& visit)
      : place_(PlaceOf(top)), top_(top), end_(BootTime() + budget), visit_(visit) {}

  void Scan(UniqueFd root) {
    Push(std::move(root), top_.stx_ino);
    while (!levels_.empty() && use_.complete()) {
      WalkedDirectory& here = levels_.back();
      if (here.pending.empty()) {
        Ascend();
        continue;
      }
      const std::string name = std::move(here.pending.back());
      here.pending.pop_back();
      Descend(here.fd.get(), name);
    }
  }

  DiskUse use() const {
    DiskUse use = use_;
    use.linked_outside = static_cast<uint64_t>(std::count_if(
        linked_.begin(), linked_.end(), [](const auto& file) { return file.second > 0; }));
    return use;
  }

 private:
  struct WalkedDirectory {
    UniqueFd fd;  // closed again where the tree is deep
    uint64_t inode = 0;
    std::vector<std::string> pending;  // subdirectories that were not entered yet
  };

  void Push(UniqueFd dir, uint64_t inode) {
    if (levels_.size() >= kTopLevels + kOpenLevels) {
      levels_[levels_.size() - kOpenLevels].fd.Reset();
    }
    levels_.push_back({std::move(dir), inode, {}});
    List(levels_.back());
  }

  // Counts every entry of a directory and keeps the names of the directories among them.
  void List(WalkedDirectory& level) {
    const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(level.fd.get());
    if (!entries.ok()) {
      // A directory that was removed after it was opened holds nothing.
      if (entries.error().sys_errno != ENOENT) {
        use_.end = ScanEnd::kUnreadable;
      }
      return;
    }
    for (const sys::DirEntry& entry : *entries) {
      if (BootTime() > end_) {
        use_.end = ScanEnd::kOutOfTime;
        return;
      }
      struct statx info{};
      const long answer = Look(level.fd.get(), entry.name.c_str(), AT_SYMLINK_NOFOLLOW, info);
      if (answer == -ENOENT) {
        continue;  // gone meanwhile
      }
      if (answer < 0) {
        use_.end = ScanEnd::kUnreadable;  // a directory that may be listed but not entered
        return;
      }
      if (PlaceOf(info) != place_) {
        use_.mount_below = true;
        continue;
      }
      if (info.stx_nlink > 1 && !S_ISDIR(info.stx_mode) && !IsFirstName(info)) {
        continue;
      }
      ++use_.inodes;
      use_.bytes += info.stx_blocks * 512;
      const bool same = info.stx_uid == top_.stx_uid && info.stx_gid == top_.stx_gid;
      use_.other_owners += same || KeepsANameFree(info) ? 0 : 1;
      if (visit_) {
        visit_(level.fd.get(), entry.name);
      }
      if (S_ISDIR(info.stx_mode)) {
        level.pending.push_back(entry.name);
      }
    }
  }

  // Of a file with several. The names that are not found are those outside of the tree.
  bool IsFirstName(const struct statx& info) {
    const auto [known, first] =
        linked_.emplace(std::pair(::makedev(info.stx_dev_major, info.stx_dev_minor), info.stx_ino),
                        info.stx_nlink - 1);
    if (!first && known->second > 0) {
      --known->second;
    }
    return first;
  }

  void Descend(int dir, const std::string& name) {
    Result<UniqueFd> child = sys::OpenAt(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct statx info{};
    if (!child.ok()) {
      const int why = child.error().sys_errno;
      if (why != ENOENT && why != ENOTDIR && why != ELOOP && !ClosedToThePayload(dir, name)) {
        use_.end = ScanEnd::kUnreadable;
      }
    } else if (Look(child->get(), "", AT_EMPTY_PATH, info) < 0) {
      use_.end = ScanEnd::kUnreadable;
    } else if (PlaceOf(info) == place_) {
      Push(std::move(*child), info.stx_ino);
    }
  }

  // Another user's directory that our uid may not even pass through: the payload can put nothing into it.
  static bool ClosedToThePayload(int dir, const std::string& name) {
    struct stat info{};
    return ::geteuid() != 0 &&
           Syscall(SYS_newfstatat, dir, Arg(name.c_str()), Arg(&info), AT_SYMLINK_NOFOLLOW) == 0 &&
           info.st_uid != ::geteuid() &&
           Syscall(SYS_faccessat, dir, Arg(name.c_str()), X_OK) == -EACCES;
  }

  // Back to the next level that has something left to enter. A chain that moves while it is summed has no such level,
  // and need not be climbed again.
  void Ascend() {
    const UniqueFd below = std::move(levels_.back().fd);
    levels_.pop_back();
    size_t up = 1;
    while (!levels_.empty() && !levels_.back().fd && levels_.back().pending.empty()) {
      levels_.pop_back();
      ++up;
    }
    if (levels_.empty() || levels_.back().fd) {
      return;
    }
    Result<UniqueFd> above = Climb(below.get(), up);
    struct statx info{};
    if (!above.ok() || Look(above->get(), "", AT_EMPTY_PATH, info) < 0 || PlaceOf(info) != place_ ||
        info.stx_ino != levels_.back().inode) {
      use_.end = ScanEnd::kMoved;
      return;
    }
    levels_.back().fd = std::move(*above);
  }

  static Result<UniqueFd> Climb(int below, size_t levels) {
    constexpr size_t kSteps = 1000;  // a path has at most 4095 bytes
    UniqueFd at;
    while (levels > 0) {
      std::string path;
      for (size_t step = std::min(levels, kSteps); step > 0; --step, --levels) {
        path += "../";
      }
      TRY_ASSIGN(UniqueFd next, sys::OpenAt(at ? at.get() : below, path, O_RDONLY | O_DIRECTORY));
      at = std::move(next);
    }
    return at;
  }

  uint64_t place_;
  struct statx top_;
  Nanos end_;
  const VisitEntry& visit_;
  DiskUse use_;
  std::vector<WalkedDirectory> levels_;
  // By device and inode: how many names were not found yet.
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> linked_;
};

}  // namespace

Result<DiskUse> ScanDisk(int dir, Nanos budget, const VisitEntry& visit) {
  // A descriptor of our own: listing moves its position, and an O_PATH one cannot be listed.
  TRY_ASSIGN(UniqueFd root, sys::OpenAt(dir, ".", O_RDONLY | O_DIRECTORY));
  struct statx info{};
  if (const long answer = Look(root.get(), "", AT_EMPTY_PATH, info); answer < 0) {
    return sys::ErrnoError("limits.disk", "cannot look at a writable directory", answer);
  }
  Scanner scanner(info, budget, visit);
  scanner.Scan(std::move(root));
  return scanner.use();
}

bool CountsAttributes(int dir) {
  struct statfs info{};
  return Syscall(SYS_fstatfs, dir, Arg(&info)) == 0 &&
         (info.f_type == EXT4_SUPER_MAGIC || info.f_type == XFS_SUPER_MAGIC);
}

}  // namespace coffer::limits
