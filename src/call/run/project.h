// SPDX-License-Identifier: Apache-2.0
//
// --project DIR: a directory of the caller's at its own path, writable, in which the call cannot
// leave anything that the host runs later (protected_tree.h).
//
// Where `.git` is a file, as in a linked worktree or a submodule, the git directory it names comes in as well, if that
// points back (isolation/git_pointer.h), and is protected in the same way. A repository above the project does not come
// in: the caller named the project, not what is around it. Where the caller does, see project_around.h.
#pragma once

#include <string>
#include <vector>

#include "call/run/protected_tree.h"
#include "call/run/told_changes.h"
#include "isolation/git_pointer.h"

namespace coffer::call {

class Project {
 public:
  // `mounts` ends with the project's own mount; what belongs to it is appended.
  // `read_only` are further paths in it that cannot be changed.
  static Result<Project> Open(PlantedRule rule, const std::vector<std::string>& read_only,
                              std::vector<isolation::OpenedMount>& mounts);

  // A cache of the project (cache_dirs.h). A link in the project can lead to what the call makes there.
  void AddCache(const isolation::HostPath& cache);

  // What the caller should know before the call starts; one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

  // The repository that git on the host finds above a project without one of its own, or "". It is not shown inside.
  const std::string& repository_above() const { return repository_above_; }

  // An empty directory stands for the `.git` that is not there (placeholder.h).
  bool HoldsGit() const;

  // What tells git inside to pass over the placeholders: `git clean -d` and `git stash -u` would
  // remove them, and fail. It holds for the project's own repository alone, where these names are
  // ours.
  std::vector<isolation::PrivateFile> GitFiles() const;

  struct End {
    std::vector<Planted> planted;
    std::vector<std::string> notes;
    Status failed;  // a tree that could not be looked through; the rest holds all the same
  };
  // Once nothing of the call runs any more.
  End Settle();

 private:
  void TellLocks(End& end) const;
  Status SettleCache(const isolation::HostPath& cache, End& end) const;
  Status OpenGitDirectory(PlantedRule rule, const isolation::GitPointer& pointer,
                          std::vector<isolation::OpenedMount>& mounts);

  isolation::HostPath root_;
  std::string git_directory_;  // of the project's repository; empty if it has none
  std::string repository_above_;
  PlantedRule rule_ = PlantedRule::kSetAside;
  std::vector<isolation::HostPath> caches_;
  std::vector<ProtectedTree> trees_;  // the project, and perhaps its git directory
  std::vector<std::string> outside_;  // the paths of those but the first
  std::vector<std::string> notes_;
  ToldChanges told_;
};

}  // namespace coffer::call
