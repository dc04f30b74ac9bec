// SPDX-License-Identifier: Apache-2.0
//
// A thread that only computes or reads, for nobody who waits, gives way to the threads that serve.
#pragma once

#include <sys/resource.h>

namespace coffer {

// Of the calling thread alone, as Linux does it, and for the rest of its life: raising it again takes a privilege. It
// needs none, and cannot fail for a thread of our own. Not the lowest priority: such a thread takes short locks too, also on a host
// whose processors are all busy.
inline void GiveWayToOthers() { (void)::setpriority(PRIO_PROCESS, 0, 10); }

}  // namespace coffer
