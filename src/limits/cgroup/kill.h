// SPDX-License-Identifier: Apache-2.0
//
// Killing what is in a cgroup directory, and removing the directory. Shared by Cgroup and the sweep.
//
// A pid read from cgroup.procs may belong to another process by the time it is signalled. So each is first pinned by a
// pidfd, then the list is read again, and only processes in both lists are signalled. So no other process is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::limits {

// A killed process needs the processor once more to end. On a host with many others to run that takes seconds.
inline constexpr Nanos kKillPatience = std::chrono::seconds(10);

// The processes in a cgroup, as far as our pid namespace has numbers for them. Sorted.
Result<std::vector<pid_t>> ReadProcs(const std::string& dir);

// v1: SIGKILL to every process in `dir`, again until none is left alive. The caller has made forking impossible, or
// accepts to race with it. An error after kKillPatience.
Status KillByPid(const std::string& dir);

// One round of SIGKILL to everything in `dir`, without waiting: for a frozen cgroup.
Status SignalOnce(const std::string& dir);

// v2: cgroup.kill where there is one (Linux 5.14), otherwise freeze and KillByPid; then waits until it is empty.
Status KillV2(const std::string& dir);

// Removes the directory, again until kKillPatience while the kernel still takes dying processes out. Gone is success.
Status RemoveCgroupDir(const std::string& dir);

}  // namespace coffer::limits
