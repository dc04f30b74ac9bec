// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_pointer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/regular_file.h"
#include "base/sys.h"
#include "base/text.h"
#include "isolation/git_config.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {
namespace {

constexpr size_t kLongestPointer = 4096;
constexpr size_t kLongestPointedConfig = 256 << 10;

Error NotFollowed(const std::string& why) {
  return Refused("policy.project.git", why,
                 "git does not work inside; if you trust that directory, name it with --rw");
}

std::string_view Trim(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r\n");
  return from == std::string_view::npos
             ? ""
             : text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

Result<std::string> ReadIn(int directory, const std::string& name, size_t limit) {
  TRY_ASSIGN(const UniqueFd file, sys::OpenNoLinks(directory, name, O_PATH));
  TRY_ASSIGN(const UniqueFd readable, sys::ReopenRegular(file.get(), name, O_RDONLY));
  return sys::ReadFd(readable.get(), limit);
}

// The path that a file of git holds, as seen from `base`. By text: a link on the way is refused when it is opened.
std::string Resolve(const std::string& base, std::string_view text) {
  const std::string path(Trim(text));
  return Normalize(path.starts_with('/') ? path : base + "/" + path);
}

bool HasFile(const HostPath& directory, const char* name) {
  struct stat info{};
  return ::fstatat(directory.fd.get(), name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<HostPath> OpenGitPlace(const std::string& path, const HostPath& project) {
  SystemPaths system;
  TRY_ASSIGN(HostPath opened, ExamineHostPath(path, BindReason::kMount, system));
  struct stat info{};
  if (!opened.directory || ::fstat(opened.fd.get(), &info) != 0) {
    return NotFollowed(Printable(path) + " is not a directory");
  }
  if (opened.owner != project.owner || (info.st_mode & S_IWOTH) != 0) {
    return NotFollowed(Printable(path) + " does not belong to the owner of the project alone");
  }
  return opened;
}

// A commondir that names its own directory says nothing: it is there only to keep the name (policy/protected_names.h).
bool IsRecord(const HostPath& directory) {
  const Result<std::string> text = ReadIn(directory.fd.get(), "commondir", kLongestPointer);
  return HasFile(directory, "commondir") &&
         !(text.ok() && Resolve(directory.path, *text) == directory.path);
}

// git's record of a linked worktree: COMMON/worktrees/NAME with a way back to the project's .git file.
Result<GitPointer> CheckWorktree(const HostPath& record, const HostPath& project) {
  const std::string worktrees(DirName(record.path));
  const std::string common(DirName(worktrees));
  TRY_ASSIGN(const std::string common_text, ReadIn(record.fd.get(), "commondir", kLongestPointer));
  TRY_ASSIGN(const std::string back, ReadIn(record.fd.get(), "gitdir", kLongestPointer));
  if (BaseName(worktrees) != "worktrees" || Resolve(record.path, common_text) != common ||
      Resolve(record.path, back) != project.path + "/.git") {
    return NotFollowed(fmt::format("{} is not a worktree's record that points back to {}",
                                   Printable(record.path), Printable(project.path)));
  }
  return GitPointer{record.path, common};
}

// A submodule's own git directory: its configuration names the project as its worktree.
Result<GitPointer> CheckSubmodule(const HostPath& directory, const HostPath& project) {
  const Result<std::string> config = ReadIn(directory.fd.get(), "config", kLongestPointedConfig);
  const std::string tree = config.ok() ? GitConfigValue(*config, "core", "worktree") : "";
  if (tree.empty() || Resolve(directory.path, tree) != project.path) {
    return NotFollowed(fmt::format("{} does not name {} as its worktree", Printable(directory.path),
                                   Printable(project.path)));
  }
  return GitPointer{directory.path, directory.path};
}

}  // namespace

Result<GitPointer> FollowGitFile(const HostPath& project) {
  TRY_ASSIGN(const std::string text, ReadIn(project.fd.get(), ".git", kLongestPointer));
  constexpr std::string_view kPrefix = "gitdir:";
  if (!text.starts_with(kPrefix)) {
    return NotFollowed("the .git file of the project names no directory");
  }
  const std::string target = Resolve(project.path, std::string_view(text).substr(kPrefix.size()));
  TRY_ASSIGN(const HostPath directory, OpenGitPlace(target, project));
  TRY_ASSIGN(GitPointer pointer, IsRecord(directory) ? CheckWorktree(directory, project)
                                                     : CheckSubmodule(directory, project));
  TRY_ASSIGN(const HostPath common, OpenGitPlace(pointer.common, project));
  if (!HasFile(common, "HEAD") || !HasFile(common, "objects") || !HasFile(common, "refs")) {
    return NotFollowed(Printable(pointer.common) + " is not a git directory");
  }
  return pointer;
}

}  // namespace coffer::isolation
