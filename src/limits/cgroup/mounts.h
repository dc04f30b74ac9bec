// SPDX-License-Identifier: Apache-2.0
//
// Where are we, and where is that mounted? /proc/self/cgroup and /proc/self/mountinfo, parsed once each. Pure.
//
// A line that does not parse is left out: both files are the kernel's, but a newer kernel may say more than we know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "limits/cgroup/host.h"

namespace coffer::limits {

// A bit set of Controller.
using ControllerBits = uint32_t;
inline constexpr ControllerBits Bit(Controller controller) {
  return 1U << static_cast<unsigned>(controller);
}

// The controllers named in a list such as "rw,cpu,cpuacct" or "memory pids"; "blkio" and "io" are both kIo.
ControllerBits ParseControllers(std::string_view list, char separator);

// One line of /proc/self/cgroup.
struct Membership {
  bool v2 = false;
  ControllerBits controllers = 0;  // of a v1 hierarchy; 0 for v2 and for named hierarchies
  std::string names;               // the same as written there, "cpu,cpuacct"
  std::string path;
};
std::vector<Membership> ParseSelfCgroup(std::string_view text);

// One cgroup or cgroup2 mount.
struct CgroupMount {
  bool v2 = false;
  ControllerBits controllers = 0;
  std::string root;         // which part of the hierarchy is visible
  std::string mount_point;  // octal escapes decoded
};
std::vector<CgroupMount> ParseMountinfo(std::string_view text);

// Where distributions mount them: one v2 mount at /sys/fs/cgroup, or each v1 hierarchy below it under its controllers'
// names. A guess, to be confirmed by finding our own cgroup there.
std::vector<CgroupMount> UsualMounts(const std::vector<Membership>& memberships);

// The directory of cgroup `path` in `mount`, or "" if the mount does not show it.
std::string DirInMount(const CgroupMount& mount, std::string_view path);

}  // namespace coffer::limits
