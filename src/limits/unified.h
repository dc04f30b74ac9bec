// SPDX-License-Identifier: Apache-2.0
//
// Whether a boundary must be born in its cgroup (v2) or can join it later (v1): one system call, before anything else
// about cgroups is known. A wrong "no" is noticed when the cgroup is made, and costs a second attempt.
#pragma once

namespace coffer::limits {

// /sys/fs/cgroup is a cgroup2 mount.
bool UnifiedCgroups();

}  // namespace coffer::limits
