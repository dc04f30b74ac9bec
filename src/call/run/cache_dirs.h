// SPDX-License-Identifier: Apache-2.0
//
// --cache NAME: a directory that a package manager or compiler keeps between the calls of one project.
//
// Each project has its own, below coffer's cache directory, so only calls of the same project see the files that its
// payloads put there. A project is its directory, not its path: if another directory has that path by now, the caches
// are emptied. It is mounted at /cache/NAME, and a variable tells the program. A directory that has grown past its
// bound is emptied before the call; during a call it may grow by the disk cap, like every writable mount.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "isolation/compose.h"

namespace coffer::call {

inline constexpr uint64_t kMostCacheBytes = 4ULL << 30;

struct OpenedCaches {
  std::vector<isolation::OpenedMount> mounts;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> notes;
};

// `project` is its real path. An unknown name is kRefused, with the names that there are.
Result<OpenedCaches> OpenCaches(const std::string& project, const std::vector<std::string>& names);

struct CacheEntry {
  std::string project;
  std::string name;
  uint64_t bytes = 0;
};
Result<std::vector<CacheEntry>> ListCaches();

// Removes the caches of `project`, or of all projects if it is empty; `names` empty: all of them. How many.
Result<size_t> ClearCaches(const std::string& project, const std::vector<std::string>& names);

}  // namespace coffer::call
