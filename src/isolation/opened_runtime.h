// SPDX-License-Identifier: Apache-2.0
//
// A runtime set with every entry opened and judged: what a boundary may show of the host for its command to run.
//
// The resolver (runtime/) reads hostile files and proposes names. Here each name is opened once and found to be the
// system's own, which any file may name, or the caller's. The caller's own is shown only if the caller named it, or if
// it lies in the own tree of a program that the caller named, or in a toolchain that the caller declared. A cached set
// passes through here like any other, so a cache decides nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/fifo_search.h"
#include "isolation/host_path.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

struct OpenedRuntime {
  RuntimeSet set;
  std::vector<HostPath> paths;                  // of set.files, in their order
  std::vector<std::vector<CoveredFile>> fifos;  // likewise
  std::vector<std::string> hidden;              // directories in /usr, each covered by an empty one

  // True if a directory of the caller's is shown.
  bool ShowsCallerDirectory() const;
  // True if the host's /usr is shown whole.
  bool ShowsAllOfUsr() const;
};

// What the caller declared, beyond the command line.
struct RuntimeGrounds {
  std::vector<std::string> toolchains;       // real directories; what a file names may lie there
  std::vector<std::string> protected_paths;  // never shown (protected_paths.h)
};

// The code of an error that a set from the cache is out of date: resolve again without the cache.
inline constexpr const char* kStaleRuntime = "runtime.stale";

// Refuses the whole set if a required entry may not be shown, and says which and what to do; drops optional ones.
Result<OpenedRuntime> OpenRuntime(RuntimeSet set, const RuntimeGrounds& grounds);

// True if every entry of the set is the system's own now: only such an answer may be remembered.
bool IsAllSystem(const RuntimeSet& set);

}  // namespace coffer::isolation
