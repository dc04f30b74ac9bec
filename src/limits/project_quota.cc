// SPDX-License-Identifier: Apache-2.0
#include "limits/project_quota.h"

#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/sys.h"
#include "limits/tree_scan.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

// Our numbers are 0x43000000 to 0x43ffffff; administrators count from 1.
constexpr uint32_t kFirstProject = 0x43000000;
constexpr uint32_t kProjects = 0x01000000;
constexpr Nanos kPatience = std::chrono::seconds(30);
// A write can be refused although a few blocks are left: it may need more for the file's own tree of blocks.
constexpr uint64_t kLastRoom = uint64_t{64} << 10;

long Quota(int dir, int command, uint32_t project, const void* value) {
  return Syscall(SYS_quotactl_fd, dir, QCMD(command, PRJQUOTA), static_cast<long>(project),
                 Arg(value));
}

bool IsEnforced(int dir) {
  fs_quota_stat state{};
  state.qs_version = FS_QSTAT_VERSION;
  return Quota(dir, Q_XGETQSTAT, 0, &state) >= 0 && (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0;
}

// All zero for a project that was never used.
if_dqblk UseOf(int dir, uint32_t project) {
  if_dqblk use{};
  return Quota(dir, Q_GETQUOTA, project, &use) >= 0 ? use : if_dqblk{};
}

// Zero: no limit.
bool Limit(int dir, uint32_t project, uint64_t bytes, uint64_t inodes) {
  if_dqblk limits{};
  limits.dqb_bhardlimit = (bytes + QIF_DQBLKSIZE - 1) / QIF_DQBLKSIZE;
  limits.dqb_ihardlimit = inodes;
  limits.dqb_valid = QIF_LIMITS;
  return Quota(dir, Q_SETQUOTA, project, &limits) >= 0;
}

struct Membership {
  uint32_t project = 0;
  bool inherits = false;
};

std::optional<Membership> MembershipOf(int file) {
  fsxattr attributes{};
  if (Syscall(SYS_ioctl, file, FS_IOC_FSGETXATTR, Arg(&attributes)) < 0) {
    return std::nullopt;
  }
  return Membership{attributes.fsx_projid, (attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0};
}

bool Assign(int file, Membership wanted) {
  fsxattr attributes{};
  if (Syscall(SYS_ioctl, file, FS_IOC_FSGETXATTR, Arg(&attributes)) < 0) {
    return false;
  }
  attributes.fsx_projid = wanted.project;
  attributes.fsx_xflags &= ~static_cast<uint32_t>(FS_XFLAG_PROJINHERIT);
  attributes.fsx_xflags |= wanted.inherits ? static_cast<uint32_t>(FS_XFLAG_PROJINHERIT) : 0;
  return Syscall(SYS_ioctl, file, FS_IOC_FSSETXATTR, Arg(&attributes)) >= 0;
}

// Looks before it opens: a fifo or a device that took the name meanwhile is not opened.
void TakeOutFile(int parent, const std::string& name, uint32_t project) {
  const Result<UniqueFd> place = sys::OpenAt(parent, name, O_PATH | O_NOFOLLOW);
  struct stat info{};
  if (!place.ok() || Syscall(SYS_fstat, place->get(), Arg(&info)) < 0 ||
      (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
    return;
  }
  const Result<UniqueFd> file =
      sys::Open("/proc/self/fd/" + std::to_string(place->get()), O_RDONLY | O_NONBLOCK);
  const std::optional<Membership> now = file.ok() ? MembershipOf(file->get()) : std::nullopt;
  if (now && now->project == project) {
    (void)Assign(file->get(), {});
  }
}

// Links, sockets and fifos stay: nothing that inherits is left, and the project has no limit any more.
void TakeOut(int dir, uint32_t project) {
  (void)ScanDisk(dir, kPatience, [project](int parent, const std::string& name) {
    TakeOutFile(parent, name, project);
  });
  (void)Assign(dir, {});
  (void)Limit(dir, project, 0, 0);
}

bool IsEmpty(int dir) {
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(dir);
  return entries.ok() && entries->empty();
}

}  // namespace

ProjectQuota::ProjectQuota(UniqueFd dir, uint32_t project)
    : dir_(std::move(dir)), project_(project) {}

std::optional<ProjectQuota> ProjectQuota::Take(int dir, const policy::Limits& caps) {
  struct stat info{};
  Result<UniqueFd> own = sys::OpenAt(dir, ".", O_RDONLY | O_DIRECTORY);
  if (::geteuid() != 0 || !own.ok() || !IsEnforced(own->get()) ||
      Syscall(SYS_fstat, own->get(), Arg(&info)) < 0 ||
      Syscall(SYS_flock, own->get(), LOCK_EX | LOCK_NB) < 0) {
    return std::nullopt;
  }
  const uint32_t project = kFirstProject + static_cast<uint32_t>(info.st_ino % kProjects);
  std::optional<Membership> now = MembershipOf(own->get());
  if (now && now->project == project) {
    TakeOut(own->get(), project);  // of a supervisor that was killed
    now = MembershipOf(own->get());
  }
  if (!now || now->project != 0 || now->inherits || !IsEmpty(own->get()) ||
      UseOf(own->get(), project).dqb_curinodes != 0) {
    return std::nullopt;
  }
  if (!Assign(own->get(), {project, true})) {
    return std::nullopt;
  }
  const if_dqblk use = UseOf(own->get(), project);  // the directory itself
  if (!Limit(own->get(), project, use.dqb_curspace + caps.disk, use.dqb_curinodes + caps.inodes)) {
    TakeOut(own->get(), project);
    return std::nullopt;
  }
  return ProjectQuota(std::move(*own), project);
}

ProjectQuota::~ProjectQuota() {
  if (dir_.valid()) {
    TakeOut(dir_.get(), project_);
  }
}

ProjectQuota& ProjectQuota::operator=(ProjectQuota&& other) noexcept {
  std::swap(dir_, other.dir_);
  std::swap(project_, other.project_);
  return *this;
}

bool ProjectQuota::Full() const {
  const if_dqblk use = UseOf(dir_.get(), project_);
  return use.dqb_curspace + kLastRoom > use.dqb_bhardlimit * QIF_DQBLKSIZE ||
         use.dqb_curinodes >= use.dqb_ihardlimit;
}

}  // namespace coffer::limits
