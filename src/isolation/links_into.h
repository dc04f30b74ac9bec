// SPDX-License-Identifier: Apache-2.0
//
// Links from outside into a project: what a program of the host follows by itself, and so takes from a file that a
// payload can write.
//
//   /srv/app/.git/hooks/pre-commit -> ../../web/scripts/check.sh     the project is /srv/app/web
//
// Git looks for its hooks in the repository around a project, and editors and agents for their
// settings in the directories above. Those places are out of the payload's reach; what a link there
// leads to is not. A caller that protects it protects each link on the way too (tree_path.h). A
// directory is searched for links kDeepest levels down, and a directory that a link leads to
// counts as one level. What lies deeper, and what a program starts in turn, is not found
// (docs/HONEST_LIMITS.md). A second name of a file is no link.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::isolation {

class LinksInto {
 public:
  static constexpr int kDeepest = 3;
  static constexpr size_t kMostEntries = 20000;  // of the directories that are listed for one name

  // `root`, the project's directory, outlives it.
  explicit LinksInto(const HostPath& root, size_t most_entries = kMostEntries)
      : root_(root), most_entries_(most_entries) {}

  // `path`, absolute, if it leads into the project, and links in it that do if it is a directory outside.
  void Add(const std::string& path);
  // `path` alone.
  void Follow(const std::string& path);
  // The protected names (policy/protected_names.h) in all directories above the project, and the repositories there.
  void AddAbove();
  // What decides which code git runs in the repository whose worktree, or which itself, is `directory`, and in its
  // submodules: hooks and configurations.
  void AddRepository(const std::string& directory);

  // Absolute. What they lead to need not be there.
  const std::set<std::string>& links() const { return links_; }
  // Links in a directory that lead to the project as a whole: these are not among links().
  const std::set<std::string>& to_root() const { return to_root_; }
  // Configurations that git reads in other worktrees and submodules of those repositories, absolute.
  const std::vector<std::string>& configs() const { return configs_; }
  // A directory that was not looked through to its end, or "".
  const std::string& cut() const { return cut_; }

 private:
  void Look(const std::string& path, int depth);
  void List(const std::string& directory, int depth);
  void AddName(const std::string& directory, const std::string& name);
  void AddGitDirectory(const std::string& git);
  void AddModules(const std::string& directory, int depth);
  bool HasRoom(const std::string& directory, size_t& count);

  const HostPath& root_;
  size_t most_entries_;
  std::set<std::string> links_;
  std::set<std::string> to_root_;
  std::set<std::string> repositories_;  // looked at
  std::vector<std::string> configs_;
  std::string cut_;
  size_t entries_ = 0;  // listed for one name
  size_t modules_ = 0;
};

}  // namespace coffer::isolation
