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

namespace coffer::limits {
namespace {

constexpr int kDeepest = 32;

class Sweeper {
 public:
  Sweeper(const CgroupHost& host, size_t known) : host_(host), known_(known) {}

  // The names below `dir` whose supervisor is gone; with `depth` > 0 also below other directories there.
  void Look(const std::string& dir, int depth, bool v2) {
    struct stat info{};
    if (raw::Syscall(SYS_newfstatat, AT_FDCWD, raw::Arg(dir.c_str()), raw::Arg(&info), 0) == 0 &&
        info.st_nlink == 2 + known_) {
      return;  // a cgroup file system counts the directories in one, and these are all ours
    }
    const Result<UniqueFd> fd = sys::Open(dir, O_RDONLY | O_DIRECTORY);
    if (!fd.ok()) {
      return;  // nothing of ours can be where we cannot look
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
        if (depth > 0) {
          Look(dir + "/" + entry.name, depth - 1, v2);
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
    }
    // This one last, and only then: without it the others would not be found again.
    if (all) {
      Remove(path, /*may_be_absent=*/false);
    }
  }

 private:
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
  const size_t known_;
  SweepReport report_;
};

}  // namespace

SweepReport SweepCgroups(const CgroupHost& host, SweepDepth depth, size_t known) {
  Sweeper sweeper(host, known);
  if (depth == SweepDepth::kHere) {
    for (const Controller controller :
         {Controller::kMemory, Controller::kPids, Controller::kCpuacct, Controller::kIo,
          Controller::kFreezer}) {
      const ControllerPlace& place = host.at(controller);
      if (place.usable) {
        sweeper.Look(place.dir, 0, place.version == CgroupVersion::kV2);
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
      sweeper.Look(place.mount_point, kDeepest, place.version == CgroupVersion::kV2);
    }
  }
  return sweeper.TakeReport();
}

}  // namespace coffer::limits
