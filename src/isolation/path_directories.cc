// SPDX-License-Identifier: Apache-2.0
#include "isolation/path_directories.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/split.h"
#include "base/sys.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {
namespace {

std::vector<std::string> PathDirectories(const HostPath& root, const char* variable = "PATH") {
  const char* const path = ::getenv(variable);
  std::vector<std::string> directories;
  if (path == nullptr || *path == '\0') {
    return directories;  // the system's own
  }
  for (const std::string_view directory : SplitText(path, ':')) {
    // An empty one is the working directory (execvp(3)).
    directories.push_back(Normalize(directory.starts_with('/')
                                        ? std::string(directory)
                                        : root.path + "/" + std::string(directory)));
  }
  return directories;
}

std::string LinkedTo(const std::string& directory) {
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(directory.c_str(), nullptr),
                                                      &::free);
  return real == nullptr ? directory : real.get();
}

}  // namespace

std::vector<std::string> PathDirectoriesIn(const HostPath& root, const char* variable) {
  std::vector<std::string> found;
  for (std::string& directory : PathDirectories(root, variable)) {
    if (!IsAtOrBelow(directory, root.path)) {
      directory = LinkedTo(directory);
    }
    if (IsAtOrBelow(directory, root.path) &&
        std::find(found.begin(), found.end(), directory) == found.end()) {
      found.push_back(std::move(directory));
    }
  }
  return found;
}

std::set<std::string> ProgramsIn(const std::string& directory) {
  std::set<std::string> programs;
  const Result<UniqueFd> opened = sys::OpenAt(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
  const Result<std::vector<sys::DirEntry>> entries =
      opened.ok() ? sys::ListDir(opened->get())
                  : Result<std::vector<sys::DirEntry>>(opened.error());
  if (!entries.ok()) {
    return programs;
  }
  for (const sys::DirEntry& entry : *entries) {
    struct stat info{};
    if (::fstatat(opened->get(), entry.name.c_str(), &info, 0) == 0 && S_ISREG(info.st_mode) &&
        (info.st_mode & 0111) != 0) {
      programs.insert(entry.name);
    }
  }
  return programs;
}

std::set<std::string> ProgramsOnPathOutside(const HostPath& root) {
  std::set<std::string> programs;
  for (const std::string& directory : PathDirectories(root)) {
    if (!IsAtOrBelow(LinkedTo(directory), root.path)) {
      programs.merge(ProgramsIn(directory));
    }
  }
  return programs;
}

}  // namespace coffer::isolation
