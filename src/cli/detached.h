// SPDX-License-Identifier: Apache-2.0
//
// What a process closes that goes on when the shell that started it has gone.
#pragma once

#include <initializer_list>
#include <vector>

namespace coffer::cli {

// Only these stay open, and 0, 1 and 2; what the caller's shell left open must not stay open as long as the process. Negative
// numbers are none.
bool CloseAllBut(std::vector<int> kept);

bool PointAtNull(std::initializer_list<int> fds);

}  // namespace coffer::cli
