// SPDX-License-Identifier: Apache-2.0
#include "call/run/usual_toolchains.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host_path.h"

namespace coffer::call {
namespace {

struct Place {
  const char* variable;  // overrides the directory below HOME
  const char* below_home;
  const char* interpreters;  // below either
};
constexpr Place kToolchainPlaces[] = {
    {"PYENV_ROOT", ".pyenv", "versions"},
    {"NVM_DIR", ".nvm", "versions"},
    {"UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", ""},
    {"FNM_DIR", ".local/share/fnm", "node-versions"},
    {"MISE_DATA_DIR", ".local/share/mise", "installs"},
    {"ASDF_DATA_DIR", ".asdf", "installs"},
};

std::string ToolchainPlace(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

std::vector<std::string> UsualToolchainPlaces() {
  const std::string home = ToolchainPlace("HOME");
  std::vector<std::string> paths;
  for (const Place& place : kToolchainPlaces) {
    std::string path = ToolchainPlace(place.variable);
    if (path.empty() && !home.empty()) {
      path = home + "/" + place.below_home;
    }
    if (!path.empty()) {
      paths.push_back(*place.interpreters == '\0' ? path : path + "/" + place.interpreters);
    }
  }
  return paths;
}

void AddUsualToolchains(std::vector<std::string>& toolchains) {
  for (const std::string& path : UsualToolchainPlaces()) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) {
      continue;
    }
    // Opened without links and judged like a declared one: a home directory, say, is too broad.
    Result<isolation::HostPath> opened = isolation::OpenHostPath(path, policy::Access::kRead);
    if (opened.ok() && opened->directory && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
        (opened->owner == ::geteuid() || opened->owner == 0)) {
      toolchains.push_back(opened->path);
    }
  }
}

}  // namespace coffer::call
