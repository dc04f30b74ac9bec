// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/regular_file.h"
#include "base/split.h"
#include "base/sys.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {
namespace {

constexpr size_t kMostBytes = 4096;

// The names in a version file, or in $PYENV_VERSION: separated by white space or colons, "#" begins a comment.
std::vector<std::string> VersionsIn(std::string_view text) {
  std::vector<std::string> versions;
  for (std::string_view line : SplitText(text, '\n')) {
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const size_t end = line.find_first_of(" \t\r:");
      if (end != 0) {
        versions.emplace_back(line.substr(0, end));
      }
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    }
  }
  return versions;
}

std::vector<std::string> VersionsOf(const std::string& file) {
  const Result<UniqueFd> fd = sys::OpenRegular(file, O_RDONLY);
  if (!fd.ok()) {
    return {};
  }
  const Result<std::string> text = sys::ReadFd(fd->get(), kMostBytes);
  return text.ok() ? VersionsIn(*text) : std::vector<std::string>();
}

std::vector<std::string> ChosenVersions(const std::string& manager) {
  if (const char* const given = ::getenv("PYENV_VERSION"); given != nullptr && given[0] != '\0') {
    return VersionsIn(given);
  }
  std::array<char, 4096> here{};
  if (::getcwd(here.data(), here.size()) != nullptr && here[0] == '/') {
    for (std::string_view at = here.data(); at.size() > 1; at = DirName(at)) {
      if (std::vector<std::string> local = VersionsOf(std::string(at) + "/.python-version");
          !local.empty()) {
        return local;
      }
    }
  }
  return VersionsOf(manager + "/version");
}

bool IsPlainName(const std::string& version) {
  return !version.empty() && version.front() != '.' && version.find('/') == std::string::npos;
}

}  // namespace

bool IsShimDirectory(const std::string& directory) { return BaseName(directory) == "shims"; }

std::string FindBehindShim(const std::string& directory, const std::string& name) {
  const std::string manager(DirName(directory));
  for (const std::string& version : ChosenVersions(manager)) {
    if (!IsPlainName(version) || version == "system") {
      continue;
    }
    std::string path = manager + "/versions/" + version + "/bin/" + name;
    struct stat status{};
    if (Stat(path, status) && S_ISREG(status.st_mode) && (status.st_mode & 0111) != 0) {
      return path;
    }
  }
  return {};
}

}  // namespace coffer::isolation
