// SPDX-License-Identifier: Apache-2.0
//
// clone3 for children that may share our memory: the child starts in a function, on a stack of its own if it is given
// one, and never returns into the frame it was cloned from.
#pragma once

#include <linux/sched.h>

namespace coffer::raw {

// The child's pid, or -errno. The child calls `entry(given)`, which must not return. `args.stack` is 0 for a child
// with a copy of our memory; with CLONE_VM it must be another stack, aligned to 16 bytes.
long CloneInto(const clone_args& args, void (*entry)(void*), void* given);

}  // namespace coffer::raw
