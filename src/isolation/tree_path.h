// SPDX-License-Identifier: Apache-2.0
//
// Where a name in a tree leads, and everything in the tree that decides it: each link on the way.
//
// A payload that can replace one of those links, or a directory above one, chooses where the name leads. The same holds
// for a directory that the path leaves by "..": the kernel goes up from where a link in its place would lead. Who
// protects a name has to protect all of them.
#pragma once

#include <string>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::isolation {

struct TreePath {
  enum class End : uint8_t { kInside, kMissing, kOutside };
  End end = End::kOutside;
  std::string path;                // relative to the root, without links; "" is the root itself
  std::vector<std::string> links;  // relative, in the order in which they are followed
  std::vector<std::string> left;   // relative: what the path goes through and leaves by ".."
};

// Follows `path`, relative to `root` or absolute. A circle of links leads outside, where nothing is.
TreePath FollowInTree(const HostPath& root, const std::string& path);

}  // namespace coffer::isolation
