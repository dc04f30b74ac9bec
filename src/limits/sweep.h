// SPDX-License-Identifier: Apache-2.0
//
// Removes the cgroups that a SIGKILLed supervisor left behind, and kills what still runs in them.
//
// A name carries the supervisor's pid, the inode of its pid namespace and the time it was made. Only cgroups of our own
// pid namespace are touched, whose pid does not exist, or belongs to a process that began after the name was made. The
// first hierarchy a Cgroup makes is the last it removes, so looking there is enough, and a sweep that finds nothing
// costs one open, one getdents and one close.
//
// Where boundaries lie in levels of their tenants (cgroup/tenant_level.h) it looks there too, and removes a level that no
// runner uses. kHere does so in the hierarchy in which it looks for boundaries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "limits/cgroup/host.h"

namespace coffer::limits {

enum class SweepDepth : uint8_t {
  kHere,        // where this process would make its own: cheap, at every start
  kEverywhere,  // all hierarchies, all depths: `coffer doctor --sweep`
};

struct SweepReport {
  size_t removed = 0;                 // cgroup directories
  size_t alive = 0;                   // left alone because their supervisor lives
  std::vector<std::string> problems;  // one line each: what could not be removed and why
};

// `known`: how many directories of our own are there now, none of them a level. If there are no others, that is all it
// looks at.
SweepReport SweepCgroups(const CgroupHost& host, SweepDepth depth = SweepDepth::kHere,
                         size_t known = 0);

}  // namespace coffer::limits
