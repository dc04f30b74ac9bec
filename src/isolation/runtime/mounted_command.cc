// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/mounted_command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "isolation/runtime/cached_recipe.h"
#include "isolation/runtime/program.h"

namespace coffer::isolation {
namespace {

std::optional<std::string> Moved(const std::string& path, const std::string& from,
                                 const std::string& to) {
  if (!IsAtOrBelow(path, from) || path.size() <= from.size()) {
    return std::nullopt;
  }
  return to + path.substr(from.size());
}

Error NotThere(const std::string& inside) {
  return {ErrorKind::kNotFound, "runtime.command.missing", inside + ": not found in the mount",
          "the path is the one inside; look at the mount's target", ENOENT};
}

Error NotExecutable(const std::string& inside, const char* why) {
  return {ErrorKind::kNotExecutable, "runtime.command.mode", inside + ": " + why, {}, 0};
}

// What the link leads to, if it is neither in a mount nor in the set.
Status AddBehindLink(const std::string& host, const ResolveOptions& options, Command& command) {
  SetBuilder builder;
  Result<Program> program = OpenProgram(builder.paths(), host);
  if (!program.ok() || program->is_script || InsideOf(program->place.real, options.mounts) ||
      !FindInside(command.runtime, program->place.real).empty()) {
    return {};
  }
  const Recipe* const recipe = FindRecipeFor(program->place);
  RuntimeSet behind;
  if (recipe != nullptr) {
    TRY_ASSIGN(behind, ResolveRecipe(*recipe, program->place.real, NamedBy::kFile, options));
  } else {
    TRY(builder.AddProgram(*program));
    TRY(builder.CheckBudget());
    behind = builder.Finish();
  }
  command.runtime = Merge(std::move(command.runtime), std::move(behind));
  return {};
}

}  // namespace

std::optional<std::string> InsideOf(const std::string& host,
                                    const std::vector<MountedPlace>& mounts) {
  for (const MountedPlace& mount : mounts) {
    if (auto inside = Moved(host, mount.host, mount.at)) {
      return inside;
    }
  }
  return std::nullopt;
}

std::optional<std::string> HostOf(const std::string& inside,
                                  const std::vector<MountedPlace>& mounts) {
  for (const MountedPlace& mount : mounts) {
    if (auto host = Moved(inside, mount.at, mount.host)) {
      return host;
    }
  }
  return std::nullopt;
}

Status UseMounted(const std::string& inside, const std::string& host, const ResolveOptions& options,
                  Command& command) {
  struct stat info{};
  if (::lstat(host.c_str(), &info) != 0) {
    return NotThere(inside);
  }
  if (S_ISDIR(info.st_mode)) {
    return NotExecutable(inside, "it is a directory");
  }
  if (S_ISREG(info.st_mode) && (info.st_mode & 0111) == 0) {
    return NotExecutable(inside, "permission denied: it is not executable");
  }
  command.program = inside;
  return AddBehindLink(host, options, command);
}

}  // namespace coffer::isolation
