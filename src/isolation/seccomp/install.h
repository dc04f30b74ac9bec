// SPDX-License-Identifier: Apache-2.0
//
// Puts a filter on the calling thread. From then on there is no way back, for it and for everything it starts.
//
// Runs in the child after clone: async-signal-safe, no heap. The caller has set no_new_privs (or holds
// CAP_SYS_ADMIN over its user namespace). The store-bypass mitigation stays on: SPEC_ALLOW is never set.
#pragma once

#include <linux/filter.h>

#include <span>

namespace coffer::isolation {

// The listener on which the supervisor gets refused calls (close-on-exec), or -errno and nothing is installed.
// -EBUSY: something outside has already put this process under a filter with a listener; the kernel takes only one.
[[nodiscard]] long InstallFilter(std::span<const sock_filter> program);

// For that case: the same refusals, answered EPERM by the kernel itself, and none of them recorded. 0 or -errno.
// The receipt has to say that denials were not recorded; never fall back to this silently.
[[nodiscard]] long InstallFilterUnrecorded(std::span<const sock_filter> program);

// True if this kernel keeps signals from a call that the supervisor has received (Linux 5.19).
bool CanWaitKillable();

}  // namespace coffer::isolation
