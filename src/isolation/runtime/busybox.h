// SPDX-License-Identifier: Apache-2.0
//
// The names of the applets that are compiled into a busybox, read from the file without running it.
//
// Busybox keeps them as one sorted table of NUL-terminated names, which starts with "[". The answer is a subset:
// applets that mount, change users or speak to the network get no name inside (`busybox nc` would start, and fail).
#pragma once

#include <string>
#include <vector>

namespace coffer::isolation {

// Empty if there is no such table.
std::vector<std::string> BusyboxApplets(const std::string& file);

}  // namespace coffer::isolation
