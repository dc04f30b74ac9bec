// SPDX-License-Identifier: Apache-2.0
#include "limits/disk_quota.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kScans = 3;  // of a tree that moves while it is summed

Result<uint64_t> DeviceOf(int dir) {
  struct stat info{};
  const long answer = Syscall(SYS_fstat, dir, Arg(&info));
  if (answer < 0) {
    return sys::ErrnoError("limits.disk", "cannot look at a writable directory", answer);
  }
  return static_cast<uint64_t>(info.st_dev);
}

Result<uint64_t> FreeBytes(int dir) {
  struct statfs info{};
  const long answer = Syscall(SYS_fstatfs, dir, Arg(&info));
  if (answer < 0) {
    return sys::ErrnoError("limits.disk", "cannot look at a file system", answer);
  }
  return static_cast<uint64_t>(info.f_bfree) * static_cast<uint64_t>(info.f_bsize);
}

Result<DiskUse> ScanUntilStill(int dir, Nanos budget) {
  const Nanos end = BootTime() + budget;
  for (int attempt = 1;; ++attempt) {
    TRY_ASSIGN(DiskUse use, ScanDisk(dir, end - BootTime()));
    if (use.end != ScanEnd::kMoved || attempt == kScans) {
      return use;
    }
  }
}

std::string WhyUnknown(ScanEnd end) {
  switch (end) {
    case ScanEnd::kComplete:
      return {};
    case ScanEnd::kOutOfTime:
      return "a writable directory holds too many files to be summed in time";
    case ScanEnd::kUnreadable:
      return "a directory in a writable directory is closed, so what it holds is not known";
    case ScanEnd::kMoved:
      return "a very deep directory moves while it is summed, so what it holds is not known";
  }
  return {};
}

// Something is held that no process shows, or shows without its size.
bool HoldsUnmeasured(const HeldFiles& held, std::span<const uint64_t> memory_devices) {
  if (!held.settled || held.unmeasured_flights > 0) {
    return true;
  }
  return std::any_of(held.mapped.begin(), held.mapped.end(), [&](const auto& entry) {
    return std::find(memory_devices.begin(), memory_devices.end(), entry.first.device) ==
           memory_devices.end();
  });
}

}  // namespace

Nanos NextDiskCheck(uint64_t grown, uint64_t cap, Nanos scan) {
  constexpr uint64_t kBytesPerMilli = 1 << 20;  // about a gigabyte per second
  const uint64_t left = cap - std::min(cap, grown);
  const std::chrono::milliseconds wish(std::clamp<uint64_t>(left / kBytesPerMilli, 10, 250));
  // A tenth of one processor at most.
  return std::max<Nanos>(wish, scan * 9);
}

Result<DiskWatch> DiskWatch::Start(int dir, const policy::Limits& caps, MountsBelow below,
                                   Nanos budget) {
  DiskWatch watch;
  TRY_ASSIGN(watch.device_, DeviceOf(dir));
  TRY_ASSIGN(watch.dir_, sys::OpenAt(dir, ".", O_PATH | O_DIRECTORY));
  struct statfs system{};
  watch.overlay_ = Syscall(SYS_fstatfs, watch.dir_.get(), Arg(&system)) == 0 &&
                   system.f_type == OVERLAYFS_SUPER_MAGIC;
  TRY_ASSIGN(watch.start_free_, FreeBytes(watch.dir_.get()));
  TRY_ASSIGN(watch.start_, ScanUntilStill(watch.dir_.get(), budget));
  if (!watch.start_.complete()) {
    return Refused("limit.disk", WhyUnknown(watch.start_.end) + "; its growth could not be bounded",
                   "give the call a smaller directory, or an empty one with --out");
  }
  if (watch.start_.mount_below && below == MountsBelow::kReachable) {
    return Refused(
        "limit.disk",
        "another file system is mounted in a writable directory; its growth could not be bounded",
        "name that part on its own, or leave it out");
  }
  watch.quota_ = ProjectQuota::Take(watch.dir_.get(), caps);
  watch.cap_bytes_ = caps.disk;
  watch.cap_inodes_ = caps.inodes;
  return watch;
}

DiskWatch::Growth DiskWatch::Check(const HeldFiles& held, std::span<const uint64_t> memory_devices,
                                   Nanos budget) {
  const Nanos before = BootTime();
  Growth growth;
  const Result<DiskUse> now = ScanUntilStill(dir_.get(), budget);
  growth.unknown = now.ok() ? WhyUnknown(now->end) : WhyUnknown(ScanEnd::kUnreadable);
  if (!held.unreadable.empty()) {
    growth.unknown = held.unreadable;
  }
  // In an overlay a file has the device of its layer, which no directory shows.
  const uint64_t bytes = (now.ok() ? now->bytes : 0) +
                         (overlay_ ? held.BytesElsewhere(memory_devices) : held.BytesOn(device_));
  growth.bytes = bytes - std::min(bytes, start_.bytes);
  if (now.ok()) {
    growth.inodes = now->inodes - std::min(now->inodes, start_.inodes);
  }
  if (HoldsUnmeasured(held, memory_devices)) {
    const Result<uint64_t> free = FreeBytes(dir_.get());
    if (!free.ok()) {
      growth.unknown = "the file system of a writable directory cannot be looked at";
    } else {
      growth.bytes = std::max(growth.bytes, start_free_ - std::min(start_free_, *free));
    }
  }
  growth.over = !growth.unknown.empty() || growth.bytes > cap_bytes_ || growth.inodes > cap_inodes_;
  next_check_ = NextDiskCheck(growth.bytes, cap_bytes_, BootTime() - before);
  return growth;
}

}  // namespace coffer::limits
