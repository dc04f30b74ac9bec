// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/mounted_command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "isolation/runtime/cached_recipe.h"
#include "isolation/runtime/command_set.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/relocate.h"

namespace coffer::isolation {
namespace {

std::optional<std::string> Moved(const std::string& path, const std::string& from,
                                 const std::string& to) {
  if (!IsAtOrBelow(path, from) || path.size() <= from.size()) {
    return std::nullopt;
  }
  return to + path.substr(from.size());
}

Error NotThere(const std::string& inside, const std::string& host) {
  return {ErrorKind::kNotFound, "runtime.command.missing", inside + ": not found in the mount",
          inside == host ? "" : "the path is the one inside; look at the mount's target", ENOENT};
}

Error NotExecutableInside(const std::string& inside, const char* why) {
  return {ErrorKind::kNotExecutable, "runtime.command.mode", inside + ": " + why, {}, 0};
}

constexpr int kMaxMountedScripts = 4;  // as the kernel: a script whose interpreter is a script ...

// Follows links and first lines from `path` of the host to the program that runs in the end.
struct Behind {
  Program program;
  std::string path;                   // as it was found on the host
  NamedBy named_by = NamedBy::kFile;  // kCaller: found on the caller's PATH, outside of the mounts
  std::string asked;                  // where env finds it inside; empty if env was not asked
};

std::optional<Behind> Follow(RealPaths& paths, std::string path,
                             const std::vector<std::string>& runtimes,
                             const ResolveOptions& options) {
  Behind behind;
  behind.path = std::move(path);
  for (int depth = 0; depth <= kMaxMountedScripts; ++depth) {
    Result<Program> program = OpenProgram(paths, behind.path);
    if (!program.ok()) {
      return std::nullopt;
    }
    behind.program = std::move(program).value();
    behind.program.named_by_caller = behind.named_by == NamedBy::kCaller;
    if (!behind.program.is_script) {
      return behind;
    }
    const Result<std::vector<std::string>> words =
        InterpreterOf(behind.program.shebang, behind.path);
    if (!words.ok() || words->front().empty()) {
      return std::nullopt;
    }
    const std::string& name = words->front();
    if (name.starts_with('/')) {
      behind.path = HostOf(Normalize(name), options.mounts).value_or(name);
      behind.named_by = NamedBy::kFile;
      continue;
    }
    // Named runtimes are all that a call has: there env finds what they hold.
    Result<std::string> found = FindProgram(name);
    if (!found.ok() || !ShowsWholeUsr(runtimes, options)) {
      return std::nullopt;
    }
    // A link in a mount says where it leads, not the caller.
    const std::optional<std::string> inside = InsideOf(*found, options.mounts);
    behind.named_by = inside ? NamedBy::kFile : NamedBy::kCaller;
    behind.asked = inside.value_or(Relocated(*found));
    behind.path = std::move(found).value();
  }
  return std::nullopt;
}

// The set of that program, if it is neither in a mount nor in `shown`.
Result<RuntimeSet> SetOf(SetBuilder& builder, const Behind& behind, const ResolveOptions& options,
                         const RuntimeSet& shown) {
  const std::string& real = behind.program.place.real;
  const bool by_caller = behind.named_by == NamedBy::kCaller;
  if (InsideOf(real, options.mounts) ||
      !FindInside(shown, by_caller ? behind.path : real).empty()) {
    return RuntimeSet{};
  }
  const Recipe* const recipe = FindRecipeFor(behind.program.place);
  RuntimeSet set;
  if (recipe != nullptr) {
    TRY_ASSIGN(set,
               ResolveRecipe(*recipe, by_caller ? behind.path : real, behind.named_by, options));
  } else {
    TRY(builder.AddProgram(behind.program));
    TRY(builder.CheckBudget());
    set = builder.Finish();
  }
  // A link in a mount leads by names outside of it: directories there may be links too, as uv makes them for versions.
  for (const auto& [name, target] : builder.paths().followed()) {
    if (!InsideOf(name, options.mounts)) {
      set.links.emplace_back(name, RelativeTarget(name, target));
    }
  }
  return by_caller ? Relocated(std::move(set)) : std::move(set);
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
    return NotThere(inside, host);
  }
  if (S_ISDIR(info.st_mode)) {
    return NotExecutableInside(inside, "it is a directory");
  }
  if (S_ISREG(info.st_mode) && (info.st_mode & 0111) == 0) {
    return NotExecutableInside(inside, "permission denied: it is not executable");
  }
  command.program = inside;
  SetBuilder builder;
  if (const Result<Program> program = OpenProgram(builder.paths(), host);
      program.ok() && program->shebang.missing) {
    return EndsInCarriageReturn(inside);
  }
  const std::optional<Behind> behind = Follow(builder.paths(), host, command.runtimes, options);
  if (!behind) {
    return {};  // execve says what is wrong with it
  }
  TRY_ASSIGN(RuntimeSet set, SetOf(builder, *behind, options, command.runtime));
  command.runtime = Merge(std::move(command.runtime), std::move(set));
  command.interpreter = behind->asked;
  return {};
}

Result<NamedOnPath> FindOnPath(const std::string& name, const ResolveOptions& options,
                               const RuntimeSet& shown) {
  TRY_ASSIGN(const std::string path, FindProgram(name));
  return FindByPath(path, options, shown);
}

Result<NamedOnPath> FindByPath(const std::string& path, const ResolveOptions& options,
                               const RuntimeSet& shown) {
  NamedOnPath found;
  SetBuilder builder;
  const std::optional<Behind> behind = Follow(builder.paths(), path, {}, options);
  if (!behind) {
    return found;
  }
  TRY_ASSIGN(found.set, SetOf(builder, *behind, options, shown));
  const std::string& real = behind->program.place.real;
  if (const auto inside = InsideOf(path, options.mounts)) {
    found.inside = *inside;
    return found;
  }
  const std::string beside =
      real.substr(0, real.rfind('/') + 1) + std::string(path.substr(path.rfind('/') + 1));
  for (const std::string& place : {path, beside}) {
    if (found.inside.empty() && !FindInside(found.set, place).empty()) {
      found.inside = place;
    }
  }
  return found;
}

}  // namespace coffer::isolation
