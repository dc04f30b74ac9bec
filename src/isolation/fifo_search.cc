// SPDX-License-Identifier: Apache-2.0
#include "isolation/fifo_search.h"

#include <dirent.h>
#include <fmt/format.h>
#include <limits.h>

#include "isolation/tree_walk.h"

namespace coffer::isolation {

Result<std::vector<std::string>> FindFifos(const HostPath& root) {
  std::vector<std::string> fifos;
  const auto look = [&](const TreeWalk::Directory& directory) -> Status {
    for (const sys::DirEntry& entry : directory.entries) {
      if (entry.type != DT_FIFO) {
        continue;
      }
      const std::string path = directory.walk.Path();
      fifos.push_back(path.empty() ? entry.name : path + "/" + entry.name);
      if (fifos.back().size() >= PATH_MAX - root.path.size() - 1) {
        return Refused("policy.path.fifo",
                       fmt::format("{} holds a fifo that lies too deep to be covered", root.path),
                       "remove the fifo, or name a directory further down");
      }
      if (fifos.size() > kMaxFifos) {
        return Refused("policy.path.fifo",
                       fmt::format("{} holds more than {} fifos", root.path, kMaxFifos));
      }
    }
    return {};
  };
  TRY(TreeWalk(root, "fifos", look).Run());
  return fifos;
}

}  // namespace coffer::isolation
