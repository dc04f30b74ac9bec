// SPDX-License-Identifier: Apache-2.0
//
// Making the network namespace takes longest and waits for nobody: a helper that shares our memory and descriptors does it
// beside us. We enter it by descriptor; and init is not ready before the helper is gone, so nothing ever runs beside it. Runs in the child after clone: no heap, no locks, no formatting.
#pragma once

#include <errno.h>

#include <atomic>
#include <cstdint>

#include "isolation/child/report.h"

namespace coffer::isolation {

struct Helper {
  ChildReport* report =
      nullptr;  // `helped` is set by the helper, first of all; `asks` when it is done
  long pid = -1;
  long network = -EIO;            // a descriptor of the namespace, or -errno
  std::atomic<uint32_t> made{0};  // `network` is final
  alignas(16) char stack[8192];
};

// The supervisor may have lent its processor (Boundary::LendProcessor): it can have it back.
void ReturnProcessor(ChildReport* report);

long StartHelper(Helper* helper);
// Waits for the network and enters it.
long EnterNetwork(Helper* helper);
// Waits for the helper's end.
long AwaitHelper(const Helper& helper);

}  // namespace coffer::isolation
