// SPDX-License-Identifier: Apache-2.0
//
// What the children that this process has waited for have used, theirs included: exact, but only once they are gone.
//
// Where there is no cgroup this is the last word on a call: its init has reaped every orphan by then. Children that were
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
