// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/tenant_level.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/sys.h"
#include "limits/cgroup/backoff.h"
#include "limits/cgroup/control_file.h"
#include "limits/cgroup/kill.h"
#include "limits/cgroup/v2.h"

namespace coffer::limits {

using raw::Arg;
using raw::Syscall;

namespace {

// Who may list a level may open it, and who may open it may lock it. To pass through it is enough to find one's own
// cgroup below it, as a boundary that mounts its cgroup file system does.
constexpr mode_t kLevelMode = 0711;
// For processes of a killed runner, which the kernel has not taken out yet.
constexpr Nanos kRemovalPatience = std::chrono::milliseconds(20);

bool IsV2(const CgroupHost& host) {
  return host.at(Controller::kCpu).version == CgroupVersion::kV2;
}

Error LevelError(const std::string& path, long negative_errno) {
  Error error = sys::ErrnoError("limits.cgroup.tenant",
                                "cannot make the cgroup of a tenant " + path, negative_errno);
  if (negative_errno == -EAGAIN) {
    error.hint = "the cgroup above has reached cgroup.max.descendants or cgroup.max.depth";
  }
  return error;
}

// True if `path` leads to the directory that is open. Another one may have been made there meanwhile.
bool LeadsTo(const std::string& path, int dir) {
  struct stat open{};
  struct stat there{};
  return ::fstat(dir, &open) == 0 &&
         Syscall(SYS_newfstatat, AT_FDCWD, Arg(path.c_str()), Arg(&there), AT_SYMLINK_NOFOLLOW) ==
             0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

Result<UniqueFd> MakeAndLock(const std::string& path) {
  Backoff backoff(kKillPatience);
  long locked = 0;
  do {
    const long made = Syscall(SYS_mkdirat, AT_FDCWD, Arg(path.c_str()), kLevelMode);
    if (made < 0 && made != -EEXIST) {
      return LevelError(path, made);
    }
    const long opened = Syscall(SYS_openat, AT_FDCWD, Arg(path.c_str()),
                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened == -ENOENT) {
      continue;  // the last runner before us has just removed it
    }
    if (opened < 0) {
      return LevelError(path, opened);
    }
    UniqueFd dir(static_cast<int>(opened));
    locked = Syscall(SYS_flock, dir.get(), LOCK_SH | LOCK_NB);
    if (locked == 0 && LeadsTo(path, dir.get())) {
      (void)::fchmod(dir.get(), kLevelMode);  // whatever the umask is
      return dir;
    }
    if (locked < 0 && locked != -EWOULDBLOCK) {
      return LevelError(path, locked);
    }
  } while (backoff.Wait());
  return LevelError(path, locked == 0 ? -ENOENT : locked);
}

enum class Removal : uint8_t { kDone, kInUse, kNotEmpty };

// A lock on `dir` is given up, whatever the answer is.
Removal RemoveIfLast(const std::string& path, int dir) {
  if (Syscall(SYS_flock, dir, LOCK_EX | LOCK_NB) < 0) {
    (void)Syscall(SYS_flock, dir, LOCK_UN);
    return Removal::kInUse;
  }
  long removed = 0;
  if (LeadsTo(path, dir)) {
    removed = Syscall(SYS_unlinkat, AT_FDCWD, Arg(path.c_str()), AT_REMOVEDIR);
  }
  // A child of ours may still have the description: closing it would not end the lock.
  (void)Syscall(SYS_flock, dir, LOCK_UN);
  return removed < 0 ? Removal::kNotEmpty : Removal::kDone;
}

}  // namespace

std::string TenantLevelParent(const CgroupHost& host) {
  const ControllerPlace& cpu = host.at(Controller::kCpu);
  if (cpu.version == CgroupVersion::kV2) {
    return host.v2_weighs ? host.v2_dir : "";
  }
  return cpu.version == CgroupVersion::kV1 && cpu.usable ? cpu.dir : "";
}

Result<TenantLevel> TenantLevel::Enter(const CgroupHost& host, const std::string& name, bool io) {
  TenantLevel level;
  const std::string parent = TenantLevelParent(host);
  if (parent.empty()) {
    return level;
  }
  if (IsV2(host)) {
    TRY(PrepareV2Parent(host, io));  // what it distributes is all that the level can distribute
  } else {
    TRY_ASSIGN(const bool with_cpuset, sys::Exists(parent + "/cpuset.cpus"));
    if (with_cpuset) {
      return level;
    }
  }
  const std::string path = parent + "/" + name;
  TRY_ASSIGN(level.lock_, MakeAndLock(path));
  level.path_ = path;
  return level;
}

void TenantLevel::WeighAsProcessors(const CgroupHost& host) const {
  constexpr long kOneProcess = 1024;
  constexpr long kMost = 262'144;  // that the kernel takes
  if (path_.empty() || IsV2(host)) {
    return;
  }
  const long processors = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  const fmt::format_int shares(std::min(kMost, kOneProcess * processors));
  (void)WriteControl(lock_.get(), "cpu.shares", {shares.data(), shares.size()});
}

TenantLevel& TenantLevel::operator=(TenantLevel&& other) noexcept {
  if (this != &other) {
    Leave();
    path_ = std::exchange(other.path_, {});
    lock_ = std::move(other.lock_);
  }
  return *this;
}

CgroupHost TenantLevel::Below(CgroupHost host) const {
  if (path_.empty()) {
    return host;
  }
  if (!IsV2(host)) {
    const std::string parent = host.at(Controller::kCpu).dir;
    for (ControllerPlace& place : host.places) {
      if (place.version == CgroupVersion::kV1 && place.dir == parent) {
        place.dir = path_;
      }
    }
    return host;
  }
  const auto here = [&](Controller controller) {
    const ControllerPlace& place = host.at(controller);
    return place.version == CgroupVersion::kV2 && place.usable;
  };
  host.v2_dir = path_;
  host.v2_move_self = false;
  host.v2_enable = "+cpu";
  for (const Controller controller : {Controller::kMemory, Controller::kPids}) {
    if (here(controller)) {
      host.v2_enable += " +" + std::string(ControllerName(controller));
    }
  }
  host.v2_enable_io = here(Controller::kIo);
  return host;
}

void TenantLevel::Leave() {
  if (!lock_) {
    return;
  }
  Backoff backoff(kRemovalPatience);
  while (RemoveIfLast(path_, lock_.get()) == Removal::kNotEmpty && backoff.Wait()) {
  }
  lock_.Reset();
  path_.clear();
}

void TenantLevel::LeaveAtOnce() {
  if (lock_) {
    (void)RemoveIfLast(path_, lock_.get());
    lock_.Reset();
    path_.clear();
  }
}

bool RemoveUnusedLevel(const std::string& path) {
  const Result<UniqueFd> dir = sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return dir.ok() && RemoveIfLast(path, dir->get()) == Removal::kDone;
}

}  // namespace coffer::limits
