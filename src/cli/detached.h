// SPDX-License-Identifier: Apache-2.0
//
// Closes the descriptors that a process must not keep when it goes on after its shell has ended.
#pragma once

#include <initializer_list>
#include <vector>

namespace coffer::cli {

// Only these stay open, and 0, 1 and 2; what the caller's shell left open must not stay open as
// long as the process. Negative numbers are none.
bool CloseAllBut(std::vector<int> kept);

bool PointAtNull(std::initializer_list<int> fds);

}  // namespace coffer::cli
