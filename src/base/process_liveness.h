// SPDX-License-Identifier: Apache-2.0
//
// Whether the process that made a file, directory or cgroup, and wrote its pid into the name, still lives.
//
// Pids are reused, so the name also holds the time when it was made, by CLOCK_BOOTTIME, which no operator can set. A
// process with that pid that began later is another process. In doubt the answer is that it lives, and the file or
// cgroup stays.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"

namespace coffer {

// `made`: nothing if the name does not say. A zombie lives no more: it holds its number and nothing else.
bool IsAlive(pid_t pid, std::optional<Nanos> made);

}  // namespace coffer
