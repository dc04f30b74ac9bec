// SPDX-License-Identifier: Apache-2.0
//
// How much memory the cgroups around this process leave it: a unit with `MemoryMax=`, a container, or a cgroup of the
// caller.
//
// Its own cgroup is found by /proc/self/cgroup, also where no cgroup namespace makes that the root. What lies above the
// part of the hierarchy that is mounted here is not seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coffer::limits {

// The tightest memory limit of the cgroups this process is in, in bytes; nothing if there is none.
std::optional<uint64_t> SurroundingMemory();
// The same of a process whose /proc/PID/cgroup says that.
std::optional<uint64_t> SurroundingMemoryOf(std::string_view self_cgroup);
// The same for files as they would be below `root` ("" is the host's).
std::optional<uint64_t> SurroundingMemoryOf(std::string_view self_cgroup,
                                            std::string_view mountinfo, const std::string& root);

}  // namespace coffer::limits
