// SPDX-License-Identifier: Apache-2.0
#include "cli/missed_neighbour.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/sys.h"
#include "base/text.h"
#include "cli/script_text.h"
#include "cli/unseen_file.h"

namespace coffer::cli {
namespace {

constexpr size_t kMaxNeighbours = 1000;

// "import helper", "from helper import", "./helper".
bool Imports(std::string_view text, const std::string& module) {
  return NamesWord(text, "import " + module) || NamesWord(text, "from " + module) ||
         NamesWord(text, "./" + module);
}

}  // namespace

std::string MissedNeighbourNote(const call::RunRequest& request) {
  // Beside a mount or with a project there is none: the script may have looked elsewhere, and the payload may have changed
  // the directory.
  const std::string text = ScriptText(request);
  if (text.empty()) {
    return {};
  }
  const std::filesystem::path script = request.command.front();
  const std::string directory = script.has_parent_path() ? script.parent_path().string() : ".";
  const Result<UniqueFd> opened = sys::Open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!opened.ok()) {
    return {};
  }
  Result<std::vector<sys::DirEntry>> entries = sys::ListDir(opened->get());
  if (!entries.ok() || entries->size() > kMaxNeighbours) {
    return {};
  }
  std::sort(entries->begin(), entries->end(),
            [](const sys::DirEntry& a, const sys::DirEntry& b) { return a.name < b.name; });
  for (const sys::DirEntry& entry : *entries) {
    const std::filesystem::path name = entry.name;
    const bool module = entry.type == DT_DIR || name.extension() == script.extension();
    if (entry.name.starts_with('.') || name == script.filename() ||
        IsBroughtIn(request, entry.name) ||
        !((name.has_extension() && NamesWord(text, entry.name)) ||
          (module && Imports(text, name.stem().string())))) {
      continue;
    }
    const std::string shown = Printable(entry.name);
    return fmt::format(
        "{} lies beside the script and was not brought in; --project {} shows the whole "
        "directory{}",
        shown, Printable(directory),
        entry.type == DT_DIR
            ? ""
            : fmt::format(
                  ", --in {} brings a copy",
                  Printable(
                      (std::filesystem::path(directory) / name).lexically_normal().string())));
  }
  return {};
}

}  // namespace coffer::cli
