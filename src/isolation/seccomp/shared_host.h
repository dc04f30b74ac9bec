// SPDX-License-Identifier: Apache-2.0
//
// What a boundary without namespaces must not do (the process level).
//
// There the payload sees the host's processes and names, and as an ordinary user it has the
// caller's own uid. Landlock keeps the content of files, and from ABI 6 on signals; it does not
// know metadata, scheduling, limits, inotify, SysV IPC, netlink or ioctl. Where an argument shows
// that a call concerns the caller itself it stays allowed (a pid of 0); everything else is refused.
// A thread's own number is not known to a filter, so it counts as another process's.
#pragma once

#include "isolation/seccomp/profile.h"

namespace coffer::isolation {

// Adds refusals to the front of any profile; nothing becomes allowed. Before ABI 3 (Linux 6.2) Landlock does not see
// truncation, so that is refused as well.
void KeepToOwnProcess(int landlock_abi, Profile& profile);

}  // namespace coffer::isolation
