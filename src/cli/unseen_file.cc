// SPDX-License-Identifier: Apache-2.0
#include "cli/unseen_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kWorkspace = "/workspace";

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Where a mount shows the host's `path`, or "".
std::string ShownAt(const call::RunRequest& request, const std::string& path) {
  for (const policy::Mount& mount : request.envelope.mounts) {
    if (path == mount.host || path.starts_with(mount.host + "/")) {
      return (mount.at.empty() ? mount.host : mount.at) + path.substr(mount.host.size());
    }
  }
  return {};
}

}  // namespace

bool IsBroughtIn(const call::RunRequest& request, std::string_view name) {
  const std::vector<std::string>& inputs = request.envelope.inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const std::string& path) { return NameOf(path) == name; });
}

std::string UnseenFileNote(const call::RunRequest& request) {
  if (request.envelope.cwd != kWorkspace) {
    return {};  // it starts in a mount, where relative names can be right
  }
  std::error_code failed;
  const std::string here = std::filesystem::current_path(failed).string() + "/";
  for (size_t i = 1; i < request.command.size(); ++i) {
    const bool absolute = !failed && request.command[i].starts_with(here);
    const std::string word = request.command[i].substr(absolute ? here.size() : 0);
    struct stat info;
    if (word.empty() || word.front() == '/' || word.front() == '-' || word == "." || word == ".." ||
        ::lstat(word.c_str(), &info) != 0) {
      continue;
    }
    const std::string name = Printable(word);
    if (const std::string at =
            ShownAt(request, std::filesystem::path(here + word).lexically_normal());
        !at.empty()) {
      if (at == (absolute ? here : std::string(kWorkspace) + "/") + word) {
        continue;  // it is where the command looked
      }
      return fmt::format("the command started in /workspace, and {} is shown at {}", name,
                         Printable(at));
    }
    if (IsBroughtIn(request, word)) {
      if (absolute) {
        return fmt::format("the copy of {} is /workspace/{}", name, Printable(NameOf(word)));
      }
      continue;
    }
    return S_ISDIR(info.st_mode)
               ? fmt::format(
                     "the directory {0} was not brought in; --ro {0}:/data shows it at "
                     "/data, --project . shows the whole directory",
                     name)
               : fmt::format(
                     "the file {0} was not brought in; --in {0} brings a copy, --project . "
                     "shows the whole directory",
                     name);
  }
  return {};
}

}  // namespace coffer::cli
