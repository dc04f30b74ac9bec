// SPDX-License-Identifier: Apache-2.0
//
// A runtime set is the answer to "what of the host must be visible for this to run": files, trees and links.
//
// Everything in it is meant read-only, and nothing outside it is needed. `host` has no symlink in
// it, so it can be opened with RESOLVE_NO_SYMLINKS; `inside` has none either once the links of the
// set exist, so mount points can be made with plain mkdir. No entry lies inside a tree of the same
// set. Links are one hop, relative, never leave the set, and none is the parent of an entry. A set
// only proposes: the paths were true when they were looked up, and opened_runtime.h opens each of
// them once, judges what it finds there, and refuses the rest.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::isolation {

struct RuntimeFile {
  std::string host;  // real path on the host, absolute
  std::string
      inside;  // absolute path inside; often a name of `host` (libz.so.1 for libz.so.1.2.13)
  bool executable =
      false;  // execve may run it. Libraries are not: they are mapped, so their mount is not noexec
  bool directory = false;  // the whole tree below it
  BindReason why = BindReason::kRuntime;
  bool named_by_caller = false;  // typed, or found on the caller's PATH, without such a link
  bool via_link = false;         // a link led here that another than root could have made
  bool optional = false;         // left out if it may not be shown
  bool remembered = false;       // from the cache: it counts only if it is the system's own
  // The same file at the same place; how it came into the set does not count.
  bool operator==(const RuntimeFile& other) const {
    return host == other.host && inside == other.inside && executable == other.executable &&
           directory == other.directory;
  }
};

struct RuntimeSet {
  std::vector<RuntimeFile> files;  // sorted by `inside`: parents before children
  std::vector<std::pair<std::string, std::string>>
      links;  // name inside -> target: {"/bin", "usr/bin"}
  // Directories of the programs that the caller named: what a file names may lie there (own_tree.h).
  std::vector<std::string> own_trees;
  bool operator==(const RuntimeSet& other) const {
    return files == other.files && links == other.links;
  }
};

// Both together: what is in two sets once, what lies in a tree of the other one left out.
RuntimeSet Merge(RuntimeSet first, RuntimeSet second);

// Follows the links of the set: "/bin/sh" -> "/usr/bin/dash". Gives "" if nothing in the set can be found there.
// For a path inside a tree the host is asked.
std::string FindInside(const RuntimeSet& set, const std::string& path);

}  // namespace coffer::isolation
