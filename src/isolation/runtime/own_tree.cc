// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/own_tree.h"

#include "isolation/host_path.h"

namespace coffer::isolation {
namespace {

bool MayBeTree(const std::string& directory) {
  SystemPaths system;
  const Result<HostPath> path = ExamineHostPath(directory, BindReason::kRuntime, system);
  return path.ok() && path->directory && path->path_class == PathClass::kCaller &&
         CheckNotBroad(*path).ok();
}

}  // namespace

std::string OwnTree(const RealPaths::Place& place) {
  const std::string& directory =
      place.link_directory.empty() ? place.directory : place.link_directory;
  const std::string_view name = BaseName(directory);
  if (name == "bin" || name == "sbin" || name == "libexec") {
    if (std::string above(DirName(directory)); MayBeTree(above)) {
      return above;
    }
  }
  return MayBeTree(directory) ? directory : std::string();
}

}  // namespace coffer::isolation
