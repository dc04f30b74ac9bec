// SPDX-License-Identifier: Apache-2.0
#include "limits/disk_quota.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <unordered_set>

#include "base/sys.h"
#include "limits/held_files.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

// Deeper trees would need more descriptors than we may have; a call that builds one has its growth called unknown.
constexpr int kDeepest = 128;

class Scanner {
 public:
  Scanner(uint64_t device, Nanos budget) : device_(device), end_(BootTime() + budget) {}

  void Scan(int dir, int depth) {
    const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(dir);
    if (!entries.ok()) {
      use_.complete = false;
      return;
    }
    for (const sys::DirEntry& entry : *entries) {
      if (!use_.complete) {
        return;
      }
      if (BootTime() > end_) {
        use_.complete = false;
        return;
      }
      struct stat info{};
      if (Syscall(SYS_newfstatat, dir, Arg(entry.name.c_str()), Arg(&info), AT_SYMLINK_NOFOLLOW) <
              0 ||
          info.st_dev != device_) {
        continue;  // gone meanwhile, or another file system
      }
      if (info.st_nlink > 1 && !S_ISDIR(info.st_mode) && !linked_.insert(info.st_ino).second) {
        continue;
      }
      ++use_.inodes;
      use_.bytes += static_cast<uint64_t>(info.st_blocks) * 512;
      if (S_ISDIR(info.st_mode)) {
        Enter(dir, entry.name, depth);
      }
    }
  }

  DiskUse use() const { return use_; }

 private:
  void Enter(int dir, const std::string& name, int depth) {
    if (depth >= kDeepest) {
      use_.complete = false;
      return;
    }
    const long fd = Syscall(SYS_openat, dir, Arg(name.c_str()),
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
      const UniqueFd child(static_cast<int>(fd));
      Scan(child.get(), depth + 1);
    } else if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP) {
      use_.complete = false;  // unreadable: what is inside cannot be known
    }
  }

  uint64_t device_;
  Nanos end_;
  DiskUse use_;
  std::unordered_set<uint64_t> linked_;
};

Result<uint64_t> DeviceOf(int dir) {
  struct stat info{};
  const long answer = Syscall(SYS_fstat, dir, Arg(&info));
  if (answer < 0) {
    return sys::ErrnoError("limits.disk", "cannot look at a writable directory", answer);
  }
  return static_cast<uint64_t>(info.st_dev);
}

}  // namespace

Result<DiskUse> ScanDisk(int dir, Nanos budget) {
  TRY_ASSIGN(const uint64_t device, DeviceOf(dir));
  // A descriptor of our own: listing moves its position, and an O_PATH one cannot be listed.
  TRY_ASSIGN(const UniqueFd root, sys::OpenAt(dir, ".", O_RDONLY | O_DIRECTORY));
  Scanner scanner(device, budget);
  scanner.Scan(root.get(), 0);
  return scanner.use();
}

Nanos NextDiskCheck(uint64_t grown, uint64_t cap, Nanos scan) {
  constexpr uint64_t kBytesPerMilli = 1 << 20;  // about a gigabyte per second
  const uint64_t left = cap - std::min(cap, grown);
  const std::chrono::milliseconds wish(std::clamp<uint64_t>(left / kBytesPerMilli, 10, 250));
  return std::max<Nanos>(wish, scan * 9);
}

Result<DiskWatch> DiskWatch::Start(int dir, const policy::Limits& caps, Nanos budget) {
  DiskWatch watch;
  TRY_ASSIGN(watch.device_, DeviceOf(dir));
  TRY_ASSIGN(watch.dir_, sys::OpenAt(dir, ".", O_PATH | O_DIRECTORY));
  TRY_ASSIGN(watch.start_, ScanDisk(watch.dir_.get(), budget));
  if (!watch.start_.complete) {
    return Refused("limit.disk", "a writable directory holds too much to be watched for growth",
                   "give the call a smaller directory, or an empty one with --out");
  }
  watch.cap_bytes_ = caps.disk;
  watch.cap_inodes_ = caps.inodes;
  return watch;
}

Result<DiskWatch::Growth> DiskWatch::Check(std::span<const pid_t> pids, Nanos budget) {
  const Nanos before = BootTime();
  TRY_ASSIGN(const DiskUse now, ScanDisk(dir_.get(), budget));
  const uint64_t bytes = now.bytes + UnnamedBytes(pids, device_);
  Growth growth;
  growth.bytes = bytes - std::min(bytes, start_.bytes);
  growth.inodes = now.inodes - std::min(now.inodes, start_.inodes);
  growth.over = !now.complete || growth.bytes > cap_bytes_ || growth.inodes > cap_inodes_;
  next_check_ = NextDiskCheck(growth.bytes, cap_bytes_, BootTime() - before);
  return growth;
}

}  // namespace coffer::limits
