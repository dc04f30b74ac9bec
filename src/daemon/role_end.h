// SPDX-License-Identifier: Apache-2.0
//
// Waits for the end of a child, for a bounded time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace coffer::daemon {

// The wait status of a child, or nothing if it still runs after that time.
std::optional<int> WaitForRoleEnd(pid_t child, std::chrono::milliseconds time);

}  // namespace coffer::daemon
