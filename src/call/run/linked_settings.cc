// SPDX-License-Identifier: Apache-2.0
#include "call/run/linked_settings.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include <array>

#include "base/sys.h"
#include "isolation/home_directories.h"
#include "isolation/links_into.h"

namespace coffer::call {
namespace {

// Below the home directory; in the home itself only names with a dot.
constexpr std::array kSettingsPlaces = {"", "/.config", "/.config/systemd/user",
                                        "/.config/autostart", "/.ssh"};

}  // namespace

std::vector<std::string> LinkedSettings(const isolation::HostPath& root) {
  isolation::LinksInto links(root);
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
          links.Follow(directory + "/" + entry.name);
        }
      }
    }
  }
  return {links.links().begin(), links.links().end()};
}

}  // namespace coffer::call
