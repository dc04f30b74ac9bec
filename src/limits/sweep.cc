// SPDX-License-Identifier: Apache-2.0
#include "limits/sweep.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/process_liveness.h"
#include "base/sys.h"
#include "limits/cgroup/kill.h"
#include "limits/cgroup/name.h"
#include "limits/cgroup/tenant_level.h"

namespace coffer::limits {
namespace {

constexpr int kDeepest = 32;

class Sweeper {
 public:
  explicit Sweeper(const CgroupHost& host) : host_(host) {}

  // The names below `dir` and in levels there whose supervisor is gone; with `depth` > 0 also below other directories.
  void Look(const std::string& dir, int depth, bool v2, size_t known) {
    struct stat info{};
    if (raw::Syscall(SYS_newfstatat, AT_FDCWD, raw::Arg(dir.c_str()), raw::Arg(&info), 0) == 0 &&
        info.st_nlink == 2 + known) {
      return;  // a cgroup file system counts the directories in one, and these are all ours
    }
    const Result<UniqueFd> fd = sys::Open(dir, O_RDONLY | O_DIRECTORY);
    if (!fd.ok()) {
      return;  // a directory that we may not read holds no cgroup of ours
    }
    const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(fd->get());
    if (!entries.ok()) {
      report_.problems.push_back(dir + ": " + entries.error().message);
      return;
    }
    for (const sys::DirEntry& entry : *entries) {
      if (entry.type != DT_DIR) {
        continue;
      }
      const std::optional<CgroupOwner> owner = FindOwner(entry.name);
      if (!owner) {
        const bool level = IsLevel(entry.name);
        const std::string path = dir + "/" + entry.name;
        if (depth > 0 || level) {
          Look(path, std::max(depth - 1, 0), v2, 0);
        }
        if (level && RemoveUnusedLevel(path)) {
          ++report_.removed;
        }
      } else if (owner->pid_namespace != host_.pid_namespace || IsAlive(owner->pid, owner->made)) {
        ++report_.alive;
      } else {
        Clear(dir, entry.name, v2);
      }
    }
  }

  SweepReport TakeReport() { return std::move(report_); }

  // Kills and removes one directory in every hierarchy where it may be, this one last.
  void Clear(const std::string& dir, const std::string& name, bool v2) {
    const std::string path = dir + "/" + name;
    Status killed = v2 ? KillV2(path) : KillByPid(path);
    if (!killed.ok()) {
      report_.problems.push_back(killed.error().message);
      return;
    }
    std::vector<std::string> others;
    for (const ControllerPlace& place : host_.places) {
      if (place.version == CgroupVersion::kV1 && place.usable && place.dir != dir &&
          std::find(others.begin(), others.end(), place.dir) == others.end()) {
        others.push_back(place.dir);
      }
    }
    if (!host_.v2_dir.empty() && host_.v2_dir != dir) {
      others.push_back(host_.v2_dir);
    }
    bool all = true;
    for (const std::string& other : others) {
      all = Remove(other + "/" + name, /*may_be_absent=*/true) && all;
      for (const std::string& level : LevelsIn(other)) {
        all = (level == dir || Remove(level + "/" + name, /*may_be_absent=*/true)) && all;
        for (const std::string& inner : LevelsIn(level)) {
          all = (inner == dir || Remove(inner + "/" + name, /*may_be_absent=*/true)) && all;
        }
      }
    }
    // This one last, and only then: without it the others would not be found again.
    if (all) {
      Remove(path, /*may_be_absent=*/false);
    }
  }

 private:
  bool IsLevel(std::string_view name) const {
    return IsTenantLevelName(name, host_.pid_namespace) ||
           IsCallsLevelName(name, host_.pid_namespace);
  }

  std::vector<std::string> LevelsIn(const std::string& dir) const {
    std::vector<std::string> levels;
    const Result<UniqueFd> fd = sys::Open(dir, O_RDONLY | O_DIRECTORY);
    const Result<std::vector<sys::DirEntry>> entries =
        fd.ok() ? sys::ListDir(fd->get()) : Result<std::vector<sys::DirEntry>>(fd.error());
    for (size_t i = 0; entries.ok() && i < entries->size(); ++i) {
      if (IsLevel((*entries)[i].name)) {
        levels.push_back(dir + "/" + (*entries)[i].name);
      }
    }
    return levels;
  }

  bool Remove(const std::string& path, bool may_be_absent) {
    if (may_be_absent) {
      const Result<bool> exists = sys::Exists(path);
      if (!exists.ok() || !*exists) {
        return true;
      }
    }
    const Status removed = RemoveCgroupDir(path);
    if (removed.ok()) {
      ++report_.removed;
    } else {
      report_.problems.push_back(removed.error().message);
    }
    return removed.ok();
  }

  const CgroupHost& host_;
  SweepReport report_;
};

}  // namespace

SweepReport SweepCgroups(const CgroupHost& host, SweepDepth depth, size_t known) {
  Sweeper sweeper(host);
  if (depth == SweepDepth::kHere) {
    for (const Controller controller :
         {Controller::kMemory, Controller::kPids, Controller::kCpuacct, Controller::kIo,
          Controller::kFreezer}) {
      const ControllerPlace& place = host.at(controller);
      if (place.usable) {
        sweeper.Look(place.dir, 0, place.version == CgroupVersion::kV2, known);
        break;
      }
    }
    return sweeper.TakeReport();
  }
  std::vector<std::string> seen;
  for (const ControllerPlace& place : host.places) {
    if (!place.mount_point.empty() &&
        std::find(seen.begin(), seen.end(), place.mount_point) == seen.end()) {
      seen.push_back(place.mount_point);
      sweeper.Look(place.mount_point, kDeepest, place.version == CgroupVersion::kV2, 0);
    }
  }
  return sweeper.TakeReport();
}

}  // namespace coffer::limits
