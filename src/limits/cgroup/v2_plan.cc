// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "limits/cgroup/probe.h"

namespace coffer::limits {
namespace {

constexpr ControllerBits kNeeded = Bit(Controller::kMemory) | Bit(Controller::kPids);
constexpr std::string_view kDelegate = "run it under: systemd-run --user --scope -p Delegate=yes";

ControllerBits Listed(const CgroupFiles& files, const std::string& path) {
  return ParseControllers(files.Read(path).value_or(""), ' ');
}

// The real root has no cgroup.type, and may distribute controllers while it holds processes.
bool IsRealRoot(const CgroupFiles& files, const std::string& dir) {
  return !files.Read(dir + "/cgroup.type").has_value() &&
         files.Read(dir + "/cgroup.controllers").has_value();
}

bool HoldsProcesses(const CgroupFiles& files, const std::string& dir) {
  return !files.Read(dir + "/cgroup.procs").value_or("").empty();
}

bool HoldsOnlyUs(const CgroupFiles& files, const std::string& dir) {
  const std::string procs = files.Read(dir + "/cgroup.procs").value_or("");
  return procs.find('\n') + 1 == procs.size();
}

}  // namespace

V2Plan PlanV2(const CgroupFiles& files, const CgroupMount& mount, const std::string& own) {
  V2Plan none;
  const std::string own_dir = DirInMount(mount, own);
  if (own_dir.empty()) {
    none.why_not = "our own cgroup " + own + " is not visible below " + mount.mount_point;
    none.fix = "mount the cgroup2 file system of this cgroup namespace";
    return none;
  }
  V2Plan partial;
  V2Plan movable;
  V2Plan enabling;
  std::string crowded;
  long refusal = 0;
  for (std::string dir = own_dir;; dir.resize(dir.rfind('/'))) {
    const bool top = dir.size() <= mount.mount_point.size();
    long denied = files.Writable(dir);
    if (denied == 0) {
      // Migration, and being born in a sibling, needs this file of the common ancestor.
      denied = files.Writable(dir + "/cgroup.procs");
    }
    if (denied != 0) {
      refusal = refusal == 0 ? denied : refusal;
    } else {
      V2Plan plan;
      plan.dir = dir;
      plan.enabled = Listed(files, dir + "/cgroup.subtree_control");
      if ((plan.enabled & kNeeded) != kNeeded || (plan.enabled & Bit(Controller::kIo)) == 0) {
        const bool may_enable = files.Writable(dir + "/cgroup.subtree_control") == 0;
        plan.can_enable =
            may_enable ? Listed(files, dir + "/cgroup.controllers") & ~plan.enabled : 0;
      }
      if ((plan.enabled & kNeeded) == kNeeded) {
        return plan;
      }
      const bool complete = ((plan.enabled | plan.can_enable) & kNeeded) == kNeeded;
      if (complete && (dir != own_dir || (top && IsRealRoot(files, dir)))) {
        if (enabling.dir.empty() &&
            (!HoldsProcesses(files, dir) || (top && IsRealRoot(files, dir)))) {
          enabling = plan;
        }
      } else if (complete && HoldsOnlyUs(files, dir)) {
        plan.move_self = true;
        movable = plan;
      } else if (complete) {
        crowded = dir;
      } else if ((plan.enabled & kNeeded) != 0 && partial.dir.empty()) {
        plan.can_enable = 0;
        partial = plan;
      }
    }
    if (top) {
      break;
    }
  }
  for (V2Plan* plan : {&enabling, &movable, &partial}) {
    if (!plan->dir.empty()) {
      return *plan;
    }
  }
  if (!crowded.empty()) {
    none.why_not = crowded + " holds other processes, so it cannot pass its controllers on";
    none.fix = "move them to a leaf first: mkdir " + crowded + "/init; for p in $(cat " + crowded +
               "/cgroup.procs); do echo $p > " + crowded + "/init/cgroup.procs; done";
  } else if (refusal == -EROFS) {
    none.why_not = mount.mount_point + " is mounted read-only";
    none.fix =
        "mount the cgroup file system writable (in a container: --cgroupns=private and a writable "
        "mount)";
  } else if (refusal != 0) {
    none.why_not = "no cgroup is delegated to this user";
    none.fix = std::string(kDelegate);
  } else {
    none.why_not = "the memory and pids controllers are not available in " + own_dir;
    none.fix = "enable them in cgroup.subtree_control of the cgroups above it, or " +
               std::string(kDelegate);
  }
  return none;
}

}  // namespace coffer::limits
