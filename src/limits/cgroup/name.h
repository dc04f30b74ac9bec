// SPDX-License-Identifier: Apache-2.0
//
// The name of a boundary's cgroup says who answers for it: "coffer-<pid>-<pid namespace>-<made>-<random>".
//
// `pid` is the supervisor's. Numbers of different pid namespaces must not be compared, so the namespace's inode is part
// of the name. `made` is when the name was made, in milliseconds of CLOCK_BOOTTIME (hexadecimal): a process that
// started later and has that pid is a reused pid. "coffer-supervisor-<pid>-<pid namespace>" is the leaf a supervisor
// moved itself to (v2).
//
// "coffer-tenant-<pid namespace>-<daemon>-<tenant>" is the cgroup that the boundaries of a tenant have in common
// (tenant_level.h). `daemon` is a hash of its state directory, so it is the same after a restart; `tenant` is a number
// of the store. Nothing in it is text that a tenant chose. Its locks say who uses it, so it has no pid.
// "coffer-calls-<pid namespace>-<daemon>" is the cgroup around those of all tenants of a daemon.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::limits {

Result<std::string> NewCgroupName(uint64_t pid_namespace);
std::string SupervisorLeafName(uint64_t pid_namespace);
std::string TenantLevelName(uint64_t pid_namespace, std::string_view state_dir, uint32_t tenant);
std::string CallsLevelName(uint64_t pid_namespace, std::string_view state_dir);

struct CgroupOwner {
  pid_t pid = 0;
  uint64_t pid_namespace = 0;
  std::optional<Nanos> made;  // a supervisor's leaf does not say
  bool operator==(const CgroupOwner&) const = default;
};
// Nothing if the name is not one of the two forms that have a pid, exactly.
std::optional<CgroupOwner> FindOwner(std::string_view name);
// True for the name of a level that was made in this pid namespace.
bool IsTenantLevelName(std::string_view name, uint64_t pid_namespace);
bool IsCallsLevelName(std::string_view name, uint64_t pid_namespace);

}  // namespace coffer::limits
