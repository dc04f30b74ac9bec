// SPDX-License-Identifier: Apache-2.0
//
// Whether the process that made something, and wrote its number into the name, still lives.
//
// Numbers are used again, so the name also says when it was made, by CLOCK_BOOTTIME, which no operator can set: a process
// that has the number and began later is not the maker. In doubt the maker lives, and what it made stays.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/clock.h"

namespace coffer {

// `made`: nothing if the name does not say. A zombie lives no more: it holds its number and nothing else.
bool IsAlive(pid_t pid, std::optional<Nanos> made);

}  // namespace coffer
