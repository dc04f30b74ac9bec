// SPDX-License-Identifier: Apache-2.0
#include "isolation/opened_runtime.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/path_words.h"
#include "base/sys.h"
#include "isolation/fifo_search.h"
#include "isolation/host_usr.h"
#include "isolation/package_etc.h"
#include "isolation/protected_paths.h"
#include "isolation/runtime/elf.h"

namespace coffer::isolation {
namespace {

bool LiesInOneOf(const std::string& path, const std::vector<std::string>& directories) {
  return std::any_of(directories.begin(), directories.end(),
                     [&](const std::string& directory) { return IsAtOrBelow(path, directory); });
}

Status CheckIsElf(const HostPath& path) {
  TRY_ASSIGN(const UniqueFd fd, OpenForReading(path));
  std::array<char, 4> head{};
  const long got = raw::Syscall(SYS_pread64, fd.get(), raw::Arg(head.data()), head.size(), 0);
  if (got != static_cast<long>(head.size()) || !LooksLikeElf({head.data(), head.size()})) {
    return Refused("policy.runtime.library",
                   fmt::format("{} is named as a {}, and is not an ELF file",
                               PathInWords(path.path), BindReasonName(path.reason)));
  }
  return {};
}

// A recipe goes by the name of a file, and an earlier payload may have written that file. The parts of a runtime lie in
// an own tree; none of them is all of it.
bool IsPartOfOwnTree(const HostPath& path, const std::vector<std::string>& own_trees) {
  return std::any_of(own_trees.begin(), own_trees.end(), [&](const std::string& tree) {
    return IsAtOrBelow(path.path, tree) && (!path.directory || path.path != tree);
  });
}

constexpr const char* kDeclare =
    "if you trust it, name the real path on the command line, or declare its directory in "
    "~/.config/coffer/run.toml: toolchains = [\"DIRECTORY\"]";

Error NotNamed(const RuntimeFile& file) {
  return Refused(
      "policy.runtime.foreign",
      fmt::format("a file of the command names {} ({}), which lies outside its own directory and "
                  "is not the system's",
                  PathInWords(file.host), BindReasonName(file.why)),
      kDeclare);
}

Error AllOfIt(const RuntimeFile& file) {
  return Refused(
      "policy.runtime.whole",
      fmt::format("a file of the command ({}) is not trusted: its name alone would show all of {}",
                  BindReasonName(file.why), PathInWords(file.host)),
      kDeclare);
}

Error NotThroughALink(const RuntimeFile& file) {
  return Refused("policy.runtime.link",
                 fmt::format("a link leads to {} ({}), and an earlier call may have made it",
                             PathInWords(file.host), BindReasonName(file.why)),
                 kDeclare);
}

// What a link names that another user than root could have made: single files of the system, and programs and libraries
// of the own tree. Never a directory, a script or a data file: it would show whatever the link leads to.
Status CheckLink(const RuntimeFile& file, const HostPath& path, const RuntimeSet& set) {
  if (path.directory) {
    return NotThroughALink(file);
  }
  if (path.path_class == PathClass::kSystem) {
    return {};
  }
  const bool elf = file.why == BindReason::kProgram || file.why == BindReason::kLoader ||
                   file.why == BindReason::kLibrary;
  if (!elf || !LiesInOneOf(path.path, set.own_trees)) {
    return NotThroughALink(file);
  }
  return CheckIsElf(path);
}

Status CheckCallers(const RuntimeFile& file, const HostPath& path, const RuntimeSet& set,
                    const RuntimeGrounds& grounds) {
  if (!file.named_by_caller) {
    if (!IsPartOfOwnTree(path, set.own_trees) && !LiesInOneOf(path.path, grounds.toolchains)) {
      return LiesInOneOf(path.path, set.own_trees) ? AllOfIt(file) : NotNamed(file);
    }
    TRY(CheckNotBroad(path));
  } else if (path.directory) {
    TRY(CheckNotBroad(path));
  }
  if (file.why == BindReason::kLoader || file.why == BindReason::kLibrary) {
    TRY(CheckIsElf(path));
  }
  return CheckShowsNone(path, policy::Access::kRead, grounds.protected_paths);
}

Result<HostPath> OpenEntry(const RuntimeFile& file, const RuntimeSet& set,
                           const RuntimeGrounds& grounds, SystemPaths& system) {
  Result<HostPath> path = ExamineHostPath(file.host, file.why, system);
  if (!path.ok()) {
    if (file.remembered) {
      path.error().code = kStaleRuntime;
    }
    return path;
  }
  if (file.remembered && path->path == "/usr") {
    return Refused(kStaleRuntime, "/usr is shown whole by a recipe alone, never from memory");
  }
  if (path->directory != file.directory) {
    return Refused("policy.path.kind",
                   fmt::format("{} is {}, and the runtime needs {} there", PathInWords(file.host),
                               path->directory ? "a directory" : "a file",
                               file.directory ? "a directory" : "a file"),
                   path->directory && path->path_class == PathClass::kCaller
                       ? "to run a command in it: coffer run --project . -- CMD"
                       : "");
  }
  if (file.via_link && !LiesInOneOf(path->path, grounds.toolchains)) {
    TRY(CheckLink(file, *path, set));
  }
  if (path->path_class == PathClass::kCaller) {
    if (file.remembered) {
      return Refused(kStaleRuntime, fmt::format("{} no longer belongs to the system", file.host));
    }
    TRY(CheckCallers(file, *path, set, grounds));
  }
  return path;
}

// Only root takes these away.
std::vector<CoveredFile> OfTheSystem(std::vector<std::string> files) {
  std::vector<CoveredFile> covered;
  for (std::string& file : files) {
    covered.push_back({std::move(file)});
  }
  return covered;
}

// What in a directory must not be reached, relative to it: fifos of the caller's, what is not public of the system's.
Result<std::vector<CoveredFile>> FindCovered(const HostPath& path, SystemPaths& system,
                                             OpenedRuntime& opened) {
  if (!path.directory) {
    return std::vector<CoveredFile>();
  }
  if (path.path_class == PathClass::kCaller) {
    return FindFifos(path);
  }
  if (path.path == "/usr") {
    HiddenUsr hidden = FindHiddenUsr(system);
    for (const std::string& directory : hidden.directories) {
      opened.hidden.push_back("/usr/" + directory);
    }
    return OfTheSystem(std::move(hidden.files));
  }
  if (!IsPackageEtc(path.path)) {
    return std::vector<CoveredFile>();
  }
  TRY_ASSIGN(std::vector<std::string> files, FindNotPublic(path));
  return OfTheSystem(std::move(files));
}

}  // namespace

bool OpenedRuntime::ShowsCallerDirectory() const {
  return std::any_of(paths.begin(), paths.end(), [](const HostPath& path) {
    return path.directory && path.path_class == PathClass::kCaller;
  });
}

bool OpenedRuntime::ShowsAllOfUsr() const {
  return std::any_of(paths.begin(), paths.end(),
                     [](const HostPath& path) { return path.directory && path.path == "/usr"; });
}

Result<OpenedRuntime> OpenRuntime(RuntimeSet set, const RuntimeGrounds& grounds) {
  OpenedRuntime opened;
  SystemPaths system;
  std::vector<RuntimeFile> files = std::move(set.files);
  for (RuntimeFile& file : files) {
    Result<HostPath> path = OpenEntry(file, set, grounds, system);
    if (!path.ok()) {
      if (file.optional) {
        continue;
      }
      return std::move(path.error());
    }
    Result<std::vector<CoveredFile>> covered = FindCovered(*path, system, opened);
    if (!covered.ok()) {
      if (file.optional) {
        continue;
      }
      return std::move(covered.error());
    }
    opened.fifos.push_back(std::move(covered).value());
    opened.paths.push_back(std::move(path).value());
    opened.set.files.push_back(std::move(file));
  }
  opened.set.links = std::move(set.links);
  opened.set.own_trees = std::move(set.own_trees);
  return opened;
}

bool IsAllSystem(const RuntimeSet& set) {
  SystemPaths system;
  return std::all_of(set.files.begin(), set.files.end(), [&](const RuntimeFile& file) {
    const Result<HostPath> path = ExamineHostPath(file.host, file.why, system);
    return path.ok() && path->path_class == PathClass::kSystem && path->directory == file.directory;
  });
}

}  // namespace coffer::isolation
