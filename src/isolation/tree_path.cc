// SPDX-License-Identifier: Apache-2.0
#include "isolation/tree_path.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "isolation/path_walk.h"

namespace coffer::isolation {
namespace {

std::string Relative(const std::string& path, const std::string& root) {
  return path == root ? "" : path.substr(root.size() + 1);
}

}  // namespace

TreePath FollowInTree(const HostPath& root, const std::string& path) {
  // By whole paths: a link may lead out of the tree and, over another link, back into it.
  PathWalk walk(path.starts_with('/') ? "/" : root.path);
  walk.Push(path);
  TreePath found;
  bool missing = false;
  while (const std::optional<std::string> next = walk.Next()) {
    struct stat info{};
    missing = missing || ::lstat(next->c_str(), &info) != 0;
    if (missing || !S_ISLNK(info.st_mode)) {
      walk.Stand(*next);
      continue;
    }
    const Result<std::string> target = sys::ReadLinkAt(AT_FDCWD, *next);
    if (!target.ok() || !walk.Follow(*target)) {
      return found;
    }
    if (IsAtOrBelow(*next, root.path)) {
      found.links.push_back(Relative(*next, root.path));
    }
  }
  for (const std::string& left : walk.left()) {
    if (left != root.path && IsAtOrBelow(left, root.path)) {
      found.left.push_back(Relative(left, root.path));
    }
  }
  if (IsAtOrBelow(walk.real(), root.path)) {
    found.end = missing ? TreePath::End::kMissing : TreePath::End::kInside;
    found.path = Relative(walk.real(), root.path);
  }
  return found;
}

}  // namespace coffer::isolation
