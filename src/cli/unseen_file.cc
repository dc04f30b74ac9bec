// SPDX-License-Identifier: Apache-2.0
#include "cli/unseen_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kWorkspace = "/workspace";

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Inputs are copied to /in and linked in /workspace under their own names.
bool IsBroughtIn(const call::RunRequest& request, std::string_view name) {
  const std::vector<std::string>& inputs = request.envelope.inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const std::string& path) { return NameOf(path) == name; });
}

}  // namespace

std::string UnseenFileNote(const call::RunRequest& request) {
  if (request.envelope.cwd != kWorkspace) {
    return {};  // it starts in a mount, where relative names can be right
  }
  for (size_t i = 1; i < request.command.size(); ++i) {
    const std::string& word = request.command[i];
    struct stat info;
    if (word.empty() || word.front() == '/' || word.front() == '-' || word == "." || word == ".." ||
        IsBroughtIn(request, word) || ::lstat(word.c_str(), &info) != 0) {
      continue;
    }
    const std::string name = Printable(word);
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
