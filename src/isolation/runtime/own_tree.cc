// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/own_tree.h"

#include <sys/stat.h>

#include "isolation/home_directories.h"
#include "isolation/host_path.h"

namespace coffer::isolation {
namespace {

bool MayBeTree(const std::string& directory) {
  SystemPaths system;
  const Result<HostPath> path = ExamineHostPath(directory, BindReason::kRuntime, system);
  return path.ok() && path->directory && path->path_class == PathClass::kCaller &&
         CheckNotBroad(*path).ok() && !IsAnyHome(directory);
}

bool IsRegularFile(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

std::string OwnTree(const RealPaths::Place& place) {
  const std::string& directory = place.via_link() ? place.link_directory : place.directory;
  const std::string_view name = BaseName(directory);
  if (name == "bin" || name == "sbin" || name == "libexec") {
    // A link in a bin may be all that a payload could write: then only a virtual environment's mark
    // speaks for the rest.
    std::string above(DirName(directory));
    if ((!place.via_link() || IsRegularFile(above + "/pyvenv.cfg")) && MayBeTree(above)) {
      return above;
    }
  }
  return MayBeTree(directory) ? directory : std::string();
}

}  // namespace coffer::isolation
