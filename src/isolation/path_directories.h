// SPDX-License-Identifier: Apache-2.0
//
// Directories of the caller's PATH that lie in a project: the `bin` of an activated environment, node_modules/.bin. A
// payload may write there, and programs of the host look for others by name: what it puts there comes before the
// system's own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::isolation {

// Absolute, at or below `root`, in the order of PATH. A relative one is taken from the root, where people start programs.
// One outside that leads into the tree by a link is the directory that it leads to. None of them has to exist.
// `variable` is PATH, or another list of directories.
std::vector<std::string> PathDirectoriesIn(const HostPath& root, const char* variable = "PATH");

// The names of the programs in a directory. A payload can make any number of them.
std::set<std::string> ProgramsIn(const std::string& directory);

// Those in the directories of PATH outside of the tree.
std::set<std::string> ProgramsOnPathOutside(const HostPath& root);

}  // namespace coffer::isolation
