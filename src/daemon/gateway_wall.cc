// SPDX-License-Identifier: Apache-2.0
#include "daemon/gateway_wall.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include <optional>
#include <span>
#include <utility>

#include "base/sys.h"
#include "limits/cgroup/host.h"
#include "limits/cgroup/surrounding.h"

namespace coffer::daemon {
namespace {

using limits::CgroupHost;
using limits::CgroupVersion;
using limits::Controller;

bool IsFileSystemInMemory(const std::string& dir) {
  struct statfs info{};
  return raw::Syscall(SYS_statfs, raw::Arg(dir.c_str()), raw::Arg(&info)) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

std::string WhyNoWall(const CgroupHost& host, const std::string& state) {
#ifdef COFFER_SANITIZED
  return "the sanitizer's own memory would count";
#endif
  const limits::ControllerPlace& memory = host.at(Controller::kMemory);
  if (!memory.usable) {
    return memory.why_not;
  }
  if (memory.version == CgroupVersion::kV2 && host.v2_move_self) {
    return "the daemon would have to leave its own cgroup, " + host.v2_dir;
  }
  // What the gateway writes there counts, and could not be written back to make room.
  for (const std::string& dir : {state, state + "/sessions"}) {
    if (IsFileSystemInMemory(dir)) {
      return dir + " is on a file system in memory";
    }
  }
  return {};
}

// v2 counts the buffers of sockets as memory. All of TCP on a host has at most net.ipv4.tcp_mem,
// by default 3/32 of its memory, and clients may fill that.
uint64_t LimitOn(CgroupVersion version) {
  struct sysinfo info{};
  return version == CgroupVersion::kV2 && ::sysinfo(&info) == 0
             ? kGatewayWall + uint64_t{info.totalram} * info.mem_unit / 8
             : kGatewayWall;
}

// The host as if it had no other controller.
CgroupHost WithMemoryOnly(CgroupHost host) {
  for (size_t i = 0; i < limits::kControllerCount; ++i) {
    host.places[i].usable =
        host.places[i].usable && static_cast<Controller>(i) == Controller::kMemory;
  }
  if (host.at(Controller::kMemory).version != CgroupVersion::kV2) {
    host.v2_dir.clear();
  }
  return host;
}

}  // namespace

GatewayWall GatewayWall::Make(const std::string& state) {
  GatewayWall wall;
  const Result<CgroupHost> host = limits::ProbeCgroups("", limits::ProbeDepth::kCall);
  wall.why_not_ = host.ok() ? WhyNoWall(*host, state) : host.error().message;
  if (!wall.why_not_.empty()) {
    return wall;
  }
  const uint64_t limit = LimitOn(host->at(Controller::kMemory).version);
  const std::optional<uint64_t> around = limits::SurroundingMemory();
  if (around && *around <= limit) {
    return wall;
  }
  policy::Limits caps;
  caps.memory = limit;
  limits::CgroupWants wants;
  wants.sockets = false;  // past a limit of their own, all connections would slow down together
  Result<limits::Cgroup> cgroup = limits::Cgroup::Create(WithMemoryOnly(*host), caps, wants);
  if (cgroup.ok() && cgroup->clone_into_fd() >= 0) {
    Result<UniqueFd> procs = sys::OpenAt(cgroup->clone_into_fd(), "cgroup.procs", O_WRONLY);
    if (!procs.ok()) {
      cgroup = std::move(procs.error());
    } else {
      wall.procs_ = std::move(*procs);
    }
  }
  if (!cgroup.ok()) {
    wall.why_not_ = cgroup.error().message;
    return wall;
  }
  wall.cgroup_ = std::move(*cgroup);
  wall.limit_ = limit;
  return wall;
}

int GatewayWall::entrance() const {
  const std::span<const int> tasks = cgroup_.tasks_fds();
  return procs_ ? procs_.get() : tasks.empty() ? -1 : tasks.front();
}

void GatewayWall::CloseEntrance() {
  procs_.Reset();
  cgroup_.CloseTasks();
}

Status EnterGatewayWall(const UniqueFd& entrance) {
  if (!entrance) {
    return {};
  }
  const long moved = raw::Syscall(SYS_write, entrance.get(), raw::Arg("0"), 1);
  return moved < 0 ? Status(sys::ErrnoError("daemon.gateway_wall",
                                            "the gateway cannot enter its memory cgroup", moved))
                   : Status();
}

}  // namespace coffer::daemon
