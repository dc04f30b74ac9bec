// SPDX-License-Identifier: Apache-2.0
//
// Making the network namespace takes longest and waits for no other step: a helper that shares our
// memory and descriptors does it beside us. We enter it by descriptor, and the supervisor raises
// its loopback (Boundary::Admit). Then the helper detaches the old root, where the kernel waits for
// a grace period. Init is not ready before the helper is gone and has said that the old root is
// too, so nothing ever runs beside either. Runs in the child after clone: no heap, no locks, no
// formatting.
#pragma once

#include <errno.h>

#include <atomic>

#include "isolation/child/report.h"

namespace coffer::isolation {

struct Helper {
  ChildReport* report = nullptr;  // where it tells what it made
  uint32_t port_sockets = 0;      // how many TCP sockets it makes there for the supervisor
  bool name_sockets = false;      // and whether those of NameSocket
  long pid = -1;
  std::atomic<uint32_t> root_left{0};  // 1 once init has left the old root
  long detached = -ECHILD;             // 0 once it is gone from the mount namespace, or -errno
  alignas(16) char stack[8192];
};

// Waits for what the helper makes, a millisecond at most. The supervisor asks too.
bool NetworkMade(const ChildReport& report);

long StartHelper(Helper* helper);
// Waits for the network and enters it. -ECHILD if the helper is dead and has made none.
long EnterNetwork(const Helper& helper);
// Init has left the old root, and needs nothing of it any more.
void TellRootLeft(Helper* helper);
// Waits for the helper's end. An error if the old root is not gone.
long AwaitHelper(const Helper& helper);

}  // namespace coffer::isolation
