// SPDX-License-Identifier: Apache-2.0
//
// The name of a boundary's cgroup says who answers for it: "coffer-<pid>-<pid namespace>-<made>-<random>".
//
// `pid` is the supervisor's. Numbers of different pid namespaces must not be compared, so the namespace's inode is part
// of the name. `made` is when the name was made, in milliseconds of CLOCK_BOOTTIME (hexadecimal): a process that
// started later and has that pid is a reused pid. "coffer-supervisor-<pid>-<pid namespace>" is the leaf a supervisor
// moved itself to (v2).
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

struct CgroupOwner {
  pid_t pid = 0;
  uint64_t pid_namespace = 0;
  std::optional<Nanos> made;  // a supervisor's leaf does not say
  bool operator==(const CgroupOwner&) const = default;
};
// Nothing if the name is not one of the two forms, exactly.
std::optional<CgroupOwner> FindOwner(std::string_view name);

}  // namespace coffer::limits
