// SPDX-License-Identifier: Apache-2.0
//
// Fifos in a directory of the caller's that will be shown. No mount flag stops their use, so each is covered.
//
// The tree may be as hostile as an earlier payload could make it (tree_walk.h). What cannot be looked into, and the
// boundary could enter, is refused. A fifo that another user makes later is not seen: the search is about what is there
// when the call starts.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

inline constexpr size_t kMaxFifos = 64;

// Paths relative to `root`, in no order.
Result<std::vector<std::string>> FindFifos(const HostPath& root);

}  // namespace coffer::isolation
