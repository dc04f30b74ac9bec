// SPDX-License-Identifier: Apache-2.0
//
// What this host's cgroups offer us: which controllers exist, where, and whether we may make children there.
//
// Probed once per process, in one pass over /proc/self/cgroup and /proc/self/mountinfo. Probing never fails and
// never changes anything: what is missing is described, with the fix. A boundary's cgroups lie directly below our own
// cgroup (v1), or below the nearest ancestor that already distributes the controllers (v2), so the limits that
// surround us surround the boundary as well; no directory of ours is permanent.
//
// v2 knows a rule that v1 does not: a cgroup that distributes memory holds no processes itself, unless it is the
// root. Our own cgroup holds us, so the boundary becomes our sibling, below a parent whose cgroup.procs we may write
// (CLONE_INTO_CGROUP needs that on the common ancestor). Only if nothing above us qualifies and our own cgroup is
// delegated to us do we move ourselves into a leaf (`v2_move_self`), which is slow and done once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/layer.h"

namespace coffer::limits {

enum class CgroupLayout : uint8_t { kNone, kV1, kV2, kHybrid };
std::string_view CgroupLayoutName(CgroupLayout layout);  // "none", "v1", "v2", "hybrid"

// The controllers we know. kIo is called blkio on v1; kCpuacct and kFreezer are built into v2.
enum class Controller : uint8_t { kMemory, kPids, kCpu, kCpuacct, kIo, kFreezer };
inline constexpr size_t kControllerCount = 6;
std::string_view ControllerName(Controller controller);

enum class CgroupVersion : uint8_t { kNone, kV1, kV2 };

struct ControllerPlace {
  CgroupVersion version = CgroupVersion::kNone;
  bool usable = false;      // we may make a child below `dir` and limit it
  std::string mount_point;  // "/sys/fs/cgroup/memory"
  std::string own_path;     // our own cgroup below it, "/user.slice/..."; "/" is the top
  std::string dir;          // where a boundary's cgroup is made
  std::string why_not;      // if not usable: one line for a person
  std::string fix;          // if not usable: what would make it so
};

struct CgroupHost {
  CgroupLayout layout = CgroupLayout::kNone;
  std::array<ControllerPlace, kControllerCount> places;

  std::string v2_dir;  // parent of the boundaries' v2 cgroups; empty if v2 has no controller for us
  std::string
      v2_enable;  // what must first be written to its cgroup.subtree_control, "+memory +pids", or empty
  bool v2_enable_io = false;  // "+io" must be written there first, if I/O is to be counted
  bool v2_move_self =
      false;  // we sit in v2_dir and must leave it for a leaf before v2_enable can be written
  bool v2_weighs =
      false;  // v2_dir distributes `cpu` already, so the kernel weighs what is below it

  uint64_t pid_namespace =
      0;  // inode of our pid namespace: supervisors of another one are not ours to judge

  ControllerPlace& at(Controller controller) { return places[static_cast<size_t>(controller)]; }
  const ControllerPlace& at(Controller controller) const {
    return places[static_cast<size_t>(controller)];
  }
  bool Usable(Controller controller) const { return at(controller).usable; }
  // The cgroup-* layers that Cgroup::Create can provide here.
  policy::LayerSet layers() const;
};

enum class ProbeDepth : uint8_t {
  kAll,   // every controller: for doctor, and for calls that want I/O counted or the freezer
  kCall,  // memory, pids and CPU accounting, what every call uses; the others are reported as not probed. Where these
  // are mounted as usual, mountinfo is not read (it takes a lock that every mount takes), and hybrid is called v1
  kTenantCall,  // kCall and cpu, for a call that enters the level of its tenant (tenant_level.h)
};

// `root` is put before every path that is read, so that tests can present other hosts. A host without
// cgroups, or with an unreadable /proc, is a CgroupHost of layout kNone whose places say why.
Result<CgroupHost> ProbeCgroups(const std::string& root = "", ProbeDepth depth = ProbeDepth::kAll);

}  // namespace coffer::limits
