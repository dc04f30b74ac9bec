// SPDX-License-Identifier: Apache-2.0
//
// Two things take long and wait for nobody: making the network namespace, and detaching the old root (the kernel waits
// for a grace period). A helper that shares our memory and descriptors does both beside us.
//
// We enter the network by descriptor; and init is not ready before the helper is gone, so nothing ever runs while the
// old root is there. Runs in the child after clone: no heap, no locks, no formatting.
#pragma once

#include <errno.h>

#include <atomic>
#include <cstdint>

namespace coffer::isolation {

struct Helper {
  long pid = -1;
  long network = -EIO;            // a descriptor of the namespace, or -errno
  std::atomic<uint32_t> made{0};  // `network` is final
  std::atomic<uint32_t> pivoted{0};
  long detached = -EIO;  // 0 once the old root is gone
  alignas(16) char stack[8192];
};

long StartHelper(Helper* helper);
// Waits for the network and enters it.
long EnterNetwork(Helper* helper);
// Tells the helper that the old root lies on top of "/".
void DetachOldRoot(Helper* helper);
// Waits for the helper's end: 0 if the old root is gone.
long AwaitHelper(const Helper& helper);

}  // namespace coffer::isolation
