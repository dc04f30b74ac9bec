// SPDX-License-Identifier: Apache-2.0
//
// Files of a project that a call may change and that decide what programs of the host do later,
// when a person starts them: scripts of package.json, settings of package managers, instructions
// for agents, operations of git that wait to be continued. They are not protected, because a call
// on a project has to be able to change them. The caller is told which ones have changed.
//
// A program of the host follows links and reads files of any size. So a name stands for where its
// links lead and for what is there, and a file that cannot be read here counts as changed when it
// is touched. The call cannot choose what is compared by choosing what cannot be read.
//
// Agents and package managers read such files in the directories above as well. There a name counts
// if links lead from it into the project.
//
// A program that a call puts into a directory of the caller's PATH takes the place of one of the same name further down:
// `ls` then starts another one. Those that git finds there are set aside (protected_tree.h).
//
// A rebase, a cherry-pick and a series of reverts go on by what lies in their directory. The list
// of a rebase may say what to execute, and all of them may name a merge strategy, which git takes
// as a part of a program's path. So every file there counts, and every git directory of the project.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::call {

class ToldChanges {
 public:
  ToldChanges() = default;
  explicit ToldChanges(const isolation::HostPath& root);
  // A git directory that was there before the call, absolute.
  void AddGitDirectory(const std::string& path);

  // One sentence for each that is different now. `root` is that of the constructor.
  std::vector<std::string> Find(const isolation::HostPath& root) const;

 private:
  // By name, or by "package.json" and a key of it: where its links lead, and a hash of what is there.
  std::map<std::string, std::string> before_;
  struct Above {
    std::string state;
    std::string why;
  };
  std::map<std::string, Above>
      above_;  // by path: in a directory above the project, and leads into it
  std::map<std::string, std::set<std::string>> on_path_;  // by directory of PATH: what there was
  std::map<std::string, std::string> operations_;         // by git directory: what waits there
  std::map<std::string, std::string> remotes_;  // by git directory: addresses beside its config
};

}  // namespace coffer::call
