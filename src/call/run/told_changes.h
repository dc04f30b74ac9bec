// SPDX-License-Identifier: Apache-2.0
//
// Files of a project that a call may change and that decide what programs of the host do later,
// when a person starts them: scripts of package.json, settings of package managers, instructions
// for agents, the list of a rebase. They are not protected, because a call on a project has to be
// able to change them. The caller is told which ones have changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::call {

class ToldChanges {
 public:
  ToldChanges() = default;
  // `git_directory` is absolute; empty if there is none.
  ToldChanges(const isolation::HostPath& root, std::string git_directory);

  // One sentence for each that is different now. `root` is that of the constructor.
  std::vector<std::string> Find(const isolation::HostPath& root) const;

 private:
  std::string git_directory_;
  std::map<std::string, std::string> before_;  // by name: its text, or a part of it
};

}  // namespace coffer::call
