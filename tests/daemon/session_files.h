// SPDX-License-Identifier: Apache-2.0
//
// A file of a session, also while no daemon has it mounted.
#pragma once

#include <string>

#include "tests/daemon/daemon.h"

namespace coffer::test {

// "" if there is none. As root, while the session is not mounted, it is read from the image (debugfs, part of e2fsprogs).
std::string ReadSessionFile(const Daemon& daemon, const std::string& session,
                            const std::string& name);

}  // namespace coffer::test
