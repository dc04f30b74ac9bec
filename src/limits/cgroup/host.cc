// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/host.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "limits/cgroup/files.h"
#include "limits/cgroup/probe.h"

namespace coffer::limits {
namespace {

// Without /proc, whose directories for a new process take 20 us to come into being. `which` is the number in
// <linux/pidfd.h>: 1 is the cgroup namespace, 5 the pid namespace (Linux 6.11). 0 on an older kernel.
uint64_t OwnNamespace(unsigned which) {
  const UniqueFd self(static_cast<int>(raw::Syscall(SYS_pidfd_open, ::getpid(), 0)));
  const UniqueFd space(
      static_cast<int>(self ? raw::Syscall(SYS_ioctl, self.get(), _IO(0xFF, which), 0) : -1));
  struct stat info{};
  return space && ::fstat(space.get(), &info) == 0 ? info.st_ino : 0;
}

class KernelFiles : public CgroupFiles {
 public:
  explicit KernelFiles(const std::string& root) : root_(root) {}

  std::optional<std::string> Read(const std::string& path) const override {
    Result<std::string> text = sys::ReadFile(root_ + path, 8 << 20);
    if (!text.ok()) {
      Note(-text.error().sys_errno);
      return std::nullopt;
    }
    return std::move(text).value();
  }
  long Writable(const std::string& path) const override {
    const std::string full = root_ + path;
    return Note(raw::Syscall(SYS_faccessat, AT_FDCWD, raw::Arg(full.c_str()), W_OK));
  }
  // 0, or why the host's answers cannot be relied on: a host that lacks something says so in other ways.
  long failure() const { return failure_; }
  uint64_t Namespace(std::string_view name) const override {
    if (const uint64_t inode = root_.empty() ? OwnNamespace(name == "pid" ? 5 : 1) : 0;
        inode != 0) {
      return inode;
    }
    const std::string path = root_ + "/proc/self/ns/" + std::string(name);
    struct stat info{};
    const long answer =
        raw::Syscall(SYS_newfstatat, AT_FDCWD, raw::Arg(path.c_str()), raw::Arg(&info), 0);
    return answer == 0 ? info.st_ino : 0;
  }

 private:
  long Note(long answer) const {
    if (answer < 0 && answer != -ENOENT && answer != -ENOTDIR && answer != -EACCES &&
        answer != -EPERM && answer != -EROFS) {
      failure_ = answer;
    }
    return answer;
  }

  const std::string& root_;
  mutable long failure_ = 0;
};

bool IsProbed(Controller controller, ProbeDepth depth) {
  return depth == ProbeDepth::kAll || controller == Controller::kMemory ||
         controller == Controller::kPids || controller == Controller::kCpuacct ||
         (depth == ProbeDepth::kTenantCall && controller == Controller::kCpu);
}

struct Reason {
  std::string why_not;
  std::string fix;
};

Reason WhyNotWritable(const ControllerPlace& place, long negative_errno) {
  if (negative_errno == -EROFS) {
    return {place.mount_point + " is mounted read-only",
            "mount it writable, or give the container its own cgroup tree"};
  }
  if (negative_errno == -EACCES || negative_errno == -EPERM) {
    // One directory below, and only what its user needs to make cgroups in it: never the hierarchy, which holds the
    // limits of all other processes.
    const std::string below = (place.dir == "/" ? "" : place.dir) + "/coffer-<user>";
    return {place.dir + " is not writable for this user",
            "run as root, or let an administrator make a cgroup of this user's own and start the "
            "shell in it: "
            "mkdir " +
                below + " && chown <user> " + below + " " + below + "/tasks " + below +
                "/cgroup.procs && echo <pid of the shell> > " + below + "/cgroup.procs"};
  }
  return {"cannot use " + place.dir + ": " + sys::ErrnoText(static_cast<int>(-negative_errno)),
          "check that the cgroup file systems are mounted as this process sees them in "
          "/proc/self/cgroup"};
}

const Membership* FindV1Membership(const std::vector<Membership>& all, ControllerBits bit) {
  for (const Membership& one : all) {
    if (!one.v2 && (one.controllers & bit) != 0) {
      return &one;
    }
  }
  return nullptr;
}

// The first mount of the controller that shows our own cgroup; otherwise any of it.
const CgroupMount* FindV1Mount(const std::vector<CgroupMount>& all, ControllerBits bit,
                               const std::string& path) {
  const CgroupMount* found = nullptr;
  for (const CgroupMount& mount : all) {
    if (!mount.v2 && (mount.controllers & bit) != 0) {
      if (!DirInMount(mount, path).empty()) {
        return &mount;
      }
      found = found == nullptr ? &mount : found;
    }
  }
  return found;
}

// Since Linux 6.10 blkio's counters stay at zero until the first throttle rule. A host that counts shows at least one
// device, "8:0 Read ...", at the top of the hierarchy.
bool CountsIo(const CgroupFiles& files, const std::string& mount_point) {
  return files.Read(mount_point + "/blkio.throttle.io_service_bytes").value_or("").find(':') !=
         std::string::npos;
}

// True if the controller lives on a mounted v1 hierarchy, usable or not.
bool PlaceV1(const CgroupFiles& files, const std::vector<Membership>& memberships,
             const std::vector<CgroupMount>& mounts, Controller controller, CgroupHost& host) {
  const Membership* membership = FindV1Membership(memberships, Bit(controller));
  const CgroupMount* mount =
      membership == nullptr ? nullptr : FindV1Mount(mounts, Bit(controller), membership->path);
  if (mount == nullptr) {
    return false;
  }
  ControllerPlace& place = host.at(controller);
  place.version = CgroupVersion::kV1;
  place.mount_point = mount->mount_point;
  place.own_path = membership->path;
  place.dir = DirInMount(*mount, membership->path);
  if (place.dir.empty()) {
    place.why_not =
        "our own cgroup " + membership->path + " is not visible below " + mount->mount_point;
    place.fix = "mount the cgroup hierarchies of this cgroup namespace";
    return true;
  }
  if (controller == Controller::kIo && !CountsIo(files, place.mount_point)) {
    place.why_not = "this kernel counts no I/O on blkio until a throttle rule exists for the disk";
    place.fix =
        "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1); until then I/O is added up from "
        "/proc";
    return true;
  }
  for (const ControllerPlace& other : host.places) {
    if (&other != &place && other.dir == place.dir && (other.usable || !other.why_not.empty())) {
      place.usable = other.usable;  // cpu and cpuacct are usually one hierarchy
      place.why_not = other.why_not;
      place.fix = other.fix;
      return true;
    }
  }
  const long denied = files.Writable(place.dir);
  place.usable = denied == 0;
  if (denied != 0) {
    const Reason reason = WhyNotWritable(place, denied);
    place.why_not = reason.why_not;
    place.fix = reason.fix;
  }
  return true;
}

void PlaceV2(const V2Plan& plan, const CgroupMount& mount, const std::string& own,
             Controller controller, ControllerPlace& place) {
  const bool built_in = controller == Controller::kCpuacct || controller == Controller::kFreezer;
  place.version = CgroupVersion::kV2;
  place.mount_point = mount.mount_point;
  place.own_path = own;
  place.dir = plan.dir;
  place.usable =
      !plan.dir.empty() && (built_in || ((plan.enabled | plan.can_enable) & Bit(controller)) != 0);
  if (!place.usable) {
    const std::string name(ControllerName(controller));
    place.why_not = plan.dir.empty()
                        ? plan.why_not
                        : "the " + name + " controller is not available below " + plan.dir;
    place.fix = plan.dir.empty() ? plan.fix
                                 : "enable it in cgroup.subtree_control of the cgroups above " +
                                       plan.dir + " (systemd: -p Delegate=" + name + ")";
  }
}

void AddMissing(ControllerPlace& place, Controller controller, bool any_mounted) {
  const std::string name(ControllerName(controller));
  if (!any_mounted) {
    place.why_not = "no cgroup file system is mounted";
    place.fix = "mount -t cgroup2 none /sys/fs/cgroup";
  } else {
    place.why_not = "the kernel offers no " + name + " controller on a mounted hierarchy";
    place.fix = "mount it, or boot without cgroup_disable=" + name;
  }
}

// Fills in layout, places and the v2 plan.
void Place(const CgroupFiles& files, const std::vector<Membership>& memberships,
           const std::vector<CgroupMount>& mounts, ProbeDepth depth, CgroupHost& host) {
  const Membership* v2_membership = nullptr;
  for (const Membership& one : memberships) {
    v2_membership = one.v2 ? &one : v2_membership;
  }
  const CgroupMount* v2_mount = nullptr;
  bool v1_mounted = false;
  for (const CgroupMount& mount : mounts) {
    if (mount.v2 && v2_membership != nullptr &&
        (v2_mount == nullptr || DirInMount(*v2_mount, v2_membership->path).empty())) {
      v2_mount = &mount;
    }
    v1_mounted = v1_mounted || (!mount.v2 && mount.controllers != 0);
  }

  ControllerBits left = 0;  // not on v1
  for (size_t i = 0; i < kControllerCount; ++i) {
    const auto controller = static_cast<Controller>(i);
    if (!IsProbed(controller, depth)) {
      host.at(controller).why_not = "not probed";
      host.at(controller).fix = "coffer doctor probes everything";
    } else if (!PlaceV1(files, memberships, mounts, controller, host)) {
      left |= Bit(controller);
    }
  }
  host.layout = v1_mounted ? (v2_mount != nullptr ? CgroupLayout::kHybrid : CgroupLayout::kV1)
                           : (v2_mount != nullptr ? CgroupLayout::kV2 : CgroupLayout::kNone);

  // On a hybrid host v2 usually has no controllers; then it costs a directory and gives nothing.
  constexpr ControllerBits kBuiltIn = Bit(Controller::kCpuacct) | Bit(Controller::kFreezer);
  const bool ask_v2 = v2_mount != nullptr && (left & ~kBuiltIn & ~Bit(Controller::kCpu)) != 0;
  const V2Plan plan = ask_v2 ? PlanV2(files, *v2_mount, v2_membership->path) : V2Plan{};
  for (size_t i = 0; i < kControllerCount; ++i) {
    const auto controller = static_cast<Controller>(i);
    if ((left & Bit(controller)) == 0) {
      continue;
    }
    if (ask_v2) {
      PlaceV2(plan, *v2_mount, v2_membership->path, controller, host.at(controller));
    } else {
      AddMissing(host.at(controller), controller, host.layout != CgroupLayout::kNone);
    }
  }
  if (ask_v2 && (host.layout == CgroupLayout::kV2 || (plan.enabled | plan.can_enable) != 0)) {
    host.v2_dir = plan.dir;
    host.v2_move_self = plan.move_self;
    host.v2_weighs = (plan.enabled & left & Bit(Controller::kCpu)) != 0;
    for (const Controller controller : {Controller::kMemory, Controller::kPids}) {
      if ((plan.can_enable & left & Bit(controller)) != 0) {
        host.v2_enable +=
            (host.v2_enable.empty() ? "+" : " +") + std::string(ControllerName(controller));
      }
    }
    host.v2_enable_io = (plan.can_enable & left & Bit(Controller::kIo)) != 0;
  }
}

}  // namespace

std::string_view CgroupLayoutName(CgroupLayout layout) {
  switch (layout) {
    case CgroupLayout::kNone:
      return "none";
    case CgroupLayout::kV1:
      return "v1";
    case CgroupLayout::kV2:
      return "v2";
    case CgroupLayout::kHybrid:
      return "hybrid";
  }
  return "none";
}

policy::LayerSet CgroupHost::layers() const {
  policy::LayerSet set;
  if (Usable(Controller::kMemory)) {
    set.Add(policy::Layer::kCgroupMemory);
  }
  if (Usable(Controller::kPids)) {
    set.Add(policy::Layer::kCgroupPids);
  }
  if (Usable(Controller::kCpuacct)) {
    set.Add(policy::Layer::kCgroupCpu);
  }
  if (Usable(Controller::kIo)) {
    set.Add(policy::Layer::kCgroupIo);
  }
  return set;
}

CgroupHost ProbeCgroupsWith(const CgroupFiles& files, ProbeDepth depth) {
  // The inode of the first cgroup namespace (PROC_CGROUP_INIT_INO). In it, paths of /proc/self/cgroup start at the root
  // of the hierarchy, so a directory of that path can only be our own cgroup.
  constexpr uint64_t kInitialCgroupNamespace = 0xEFFFFFFB;
  const std::optional<std::string> self = files.Read("/proc/self/cgroup");
  const std::vector<Membership> memberships = ParseSelfCgroup(self.value_or(""));
  CgroupHost host;
  if (depth != ProbeDepth::kAll && self && files.Namespace("cgroup") == kInitialCgroupNamespace) {
    Place(files, memberships, UsualMounts(memberships), depth, host);
  }
  const bool cpu_elsewhere = depth == ProbeDepth::kTenantCall && !host.Usable(Controller::kCpu) &&
                             host.at(Controller::kCpu).version == CgroupVersion::kV1;
  if (!host.Usable(Controller::kMemory) || !host.Usable(Controller::kPids) ||
      !host.Usable(Controller::kCpuacct) || cpu_elsewhere) {
    host = CgroupHost();
    const std::optional<std::string> mountinfo = files.Read("/proc/self/mountinfo");
    Place(files, memberships, ParseMountinfo(mountinfo.value_or("")), depth, host);
    if (!self || !mountinfo) {
      for (ControllerPlace& place : host.places) {
        place.why_not = "/proc/self/cgroup or /proc/self/mountinfo cannot be read";
        place.fix = "mount /proc";
      }
    }
  }
  host.pid_namespace = files.Namespace("pid");
  return host;
}

Result<CgroupHost> ProbeCgroups(const std::string& root, ProbeDepth depth) {
  const KernelFiles files(root);
  CgroupHost host = ProbeCgroupsWith(files, depth);
  if (files.failure() != 0) {
    return sys::ErrnoError("isolation.cgroup", "cannot find out what cgroups this host has",
                           files.failure());
  }
  if (!root.empty()) {
    for (ControllerPlace& place : host.places) {
      place.dir = place.dir.empty() ? "" : root + place.dir;
    }
    host.v2_dir = host.v2_dir.empty() ? "" : root + host.v2_dir;
  }
  return host;
}

}  // namespace coffer::limits
