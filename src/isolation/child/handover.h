// SPDX-License-Identifier: Apache-2.0
//
// Messages between init and its supervisor while they share a descriptor table: bytes over the control socket, the
// boundary's terminal, and at the end the table itself. After clone: no heap, no locks. Each function returns a
// negative errno where it failed.
#pragma once

#include <cstdint>

#include "isolation/child/enter.h"

namespace coffer::isolation {

// Waits until the supervisor sends `expected`. Any other word, or the supervisor's death, is -EPIPE.
long AwaitWord(char expected, int control, int supervisor);

// A terminal on the boundary's own devpts. The master lands in the table that the supervisor still shares. The slave.
long OpenPty(ChildReport* report);

// Ends the sharing and keeps 0, 1, 2, the control socket and `extra`, unless that is -1. The
// supervisor guarantees that none of them is below 3.
long KeepOnlyInitFds(const ChildContext& context, const int32_t (&stdio)[3], long extra);

}  // namespace coffer::isolation
