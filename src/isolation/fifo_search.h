// SPDX-License-Identifier: Apache-2.0
//
// Fifos in a directory of the caller's that will be shown. No mount flag stops their use, so each is covered.
//
// The tree may be as hostile as an earlier payload could make it: any depth, names of any length, directories that are
// closed to listing and open to those who know a name. The search goes by descriptors, never by a path, and holds at most
// `kMaxOpen` of them. What it cannot look into, and the boundary could enter, is refused. A fifo that another user makes
// later is not seen: the search is about what is there when the call starts.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

inline constexpr size_t kMaxScanned = 2000000;  // entries; a larger tree is refused
inline constexpr size_t kMaxFifos = 64;
inline constexpr size_t kMaxOpen = 100;

// Paths relative to `root`, in no order.
Result<std::vector<std::string>> FindFifos(const HostPath& root);

}  // namespace coffer::isolation
