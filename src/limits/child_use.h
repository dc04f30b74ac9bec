// SPDX-License-Identifier: Apache-2.0
//
// The usage of the children that this process has waited for, with that of their children: exact, but only after they
// end.
//
// Without a cgroup these are the final figures of a call: its init has reaped every orphan by then. Children that were
// not reaped (their parent ignored SIGCHLD) are not in it.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace coffer::limits {

struct ChildUse {
  Nanos cpu{0};
  uint64_t io_bytes = 0;
};

ChildUse ReadChildUse();

}  // namespace coffer::limits
