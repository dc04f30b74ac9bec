// SPDX-License-Identifier: Apache-2.0
//
// A mount namespace of the daemon's own.
//
// The file systems of sessions (limits/volume.h) are mounted in it and nowhere else. The kernel
// unmounts them when the last process of the daemon has ended, in order or killed, and with the
// mounts go the loop devices. So there is nothing to clean up, and nothing of the host sees them.
// What the host mounts later is seen here too, where its mounts are shared (which systemd makes
// them).
#pragma once

#include "base/result.h"

namespace coffer::daemon {

// As root, before the roles are started; without CAP_SYS_ADMIN it does nothing, because then no volume can be mounted
// either. Fails if the namespace was made and mounts in it could still reach the host.
Status EnterOwnMounts();

}  // namespace coffer::daemon
