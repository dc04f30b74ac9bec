// SPDX-License-Identifier: Apache-2.0
#include "daemon/disk_reserve.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/print.h"
#include "base/sys.h"

namespace coffer::daemon {
namespace {

// As much as the ends of all calls that run can take, or a sixteenth of a small disk.
constexpr uint64_t kMostLow = 64ULL << 20;
constexpr uint64_t kShare = 16;

}  // namespace

void DiskReserve::Open(const std::string& state) {
  {
    const std::lock_guard lock(mutex_);
    state_ = state;
    file_ = state + "/reserve";
    struct statvfs info{};
    if (::statvfs(state.c_str(), &info) == 0) {
      disk_bytes_ = uint64_t{info.f_blocks} * info.f_frsize;
    }
    low_ = std::min(kMostLow, disk_bytes_ / kShare);
  }
  Look();
}

void DiskReserve::Look() {
  const std::lock_guard lock(mutex_);
  struct statvfs info{};
  if (state_.empty() || ::statvfs(state_.c_str(), &info) != 0) {
    return;
  }
  const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  if (!full_ && free < low_) {
    full_ = true;
    Release();
    PrintError(HostFault("store.full",
                         "the disk of the state directory is nearly full; nothing new begins",
                         "free space there; work goes on by itself"));
  } else if (full_ && free >= 2 * low_) {
    full_ = false;
    PrintError("coffer: note: the disk of the state directory has room again");
  }
  if (!full_ && !filled_ && free >= 2 * low_) {
    Fill();
  }
}

// Half of what counts as low: a disk that has just enough must not become full by this.
void DiskReserve::Fill() {
  const Result<UniqueFd> file = sys::Open(file_, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  filled_ = true;  // or not: then there is none, and nothing else depends on it
  if (file.ok() &&
      raw::Syscall(SYS_fallocate, file->get(), 0, 0, static_cast<long>(low_ / 2)) < 0) {
    (void)::unlink(file_.c_str());
  }
}

void DiskReserve::Release() {
  (void)::unlink(file_.c_str());
  filled_ = false;
}

Status DiskReserve::CheckRoom() const {
  if (!full_) {
    return {};
  }
  return HostFault("store.full", "the disk of the state directory is full",
                   "try again later; its operator has to free space");
}

}  // namespace coffer::daemon
