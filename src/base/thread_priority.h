// SPDX-License-Identifier: Apache-2.0
//
// A thread whose work no client waits for gives way to the threads that serve clients.
#pragma once

#include <sys/resource.h>

namespace coffer {

// Lowers the priority of the calling thread alone, as Linux does it, for the rest of its life:
// raising it again takes a privilege. Lowering needs none, and cannot fail for a thread of our own.
// It is not the lowest priority: such a thread takes short locks too, also on a host whose
// processors are all busy.
inline void GiveWayToOthers() { (void)::setpriority(PRIO_PROCESS, 0, 10); }

}  // namespace coffer
