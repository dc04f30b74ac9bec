// SPDX-License-Identifier: Apache-2.0
//
// Whether a thread still holds anything, by its entry in /proc. What cannot be read of a living thread counts as too
// much; what cannot be read of one that has ended is not there.
#pragma once

#include <cstdint>
#include <string>

namespace coffer::limits {

enum class TaskLife : uint8_t { kAlive, kEnding, kGone };

// `task` is its directory, "/proc/PID/task/TID/".
TaskLife LifeOfTask(const std::string& task);

}  // namespace coffer::limits
