// SPDX-License-Identifier: Apache-2.0
#include "call/run/linked_settings.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include <array>

#include "base/sys.h"
#include "isolation/home_directories.h"
#include "isolation/runtime/real_path.h"

namespace coffer::call {
namespace {

// Below the home directory; in the home itself only names with a dot.
constexpr std::array kSettingsPlaces = {"", "/.config", "/.config/systemd/user",
                                        "/.config/autostart", "/.ssh"};

void AddTargets(const std::string& directory, const std::string& name,
                const isolation::HostPath& root, std::vector<std::string>& found) {
  const auto add = [&](const std::string& path) {
    if (path.size() > root.path.size() + 1 && isolation::IsAtOrBelow(path, root.path)) {
      found.push_back(path.substr(root.path.size() + 1));
    }
  };
  const std::string link = directory + "/" + name;
  const Result<std::string> target = sys::ReadLinkAt(AT_FDCWD, link);
  if (!target.ok()) {
    return;
  }
  add(isolation::Normalize(target->starts_with('/') ? *target : directory + "/" + *target));
  if (char* const real = ::realpath(link.c_str(), nullptr); real != nullptr) {
    add(real);
    ::free(real);
  }
}

}  // namespace

std::vector<std::string> LinkedSettings(const isolation::HostPath& root) {
  std::vector<std::string> found;
  const char* const given = ::getenv("HOME");
  for (const std::string& home :
       {isolation::OwnHome(), std::string(given == nullptr ? "" : given)}) {
    for (const char* const place : kSettingsPlaces) {
      const std::string directory = home + place;
      const Result<UniqueFd> opened =
          home.starts_with('/') ? sys::Open(directory, O_RDONLY | O_DIRECTORY)
                                : Result<UniqueFd>(Refused("policy.path", "no home directory"));
      const Result<std::vector<sys::DirEntry>> entries =
          opened.ok() ? sys::ListDir(opened->get())
                      : Result<std::vector<sys::DirEntry>>(opened.error());
      if (!entries.ok()) {
        continue;  // not there, or not to be read by the caller's programs either
      }
      for (const sys::DirEntry& entry : *entries) {
        const bool link = entry.type == DT_LNK || entry.type == DT_UNKNOWN;
        if (link && (*place != '\0' || entry.name.starts_with('.'))) {
          AddTargets(directory, entry.name, root, found);
        }
      }
    }
  }
  return found;
}

}  // namespace coffer::call
