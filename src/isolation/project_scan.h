// SPDX-License-Identifier: Apache-2.0
//
// Finds in a tree what makes a program on the host run code later: protected names (policy/protected_names.h) and git
// directories, wherever they are.
//
// A git directory is what git takes for one, by its content: HEAD with objects and refs, or with a commondir that says
// where those are, as in the record of a linked worktree. So a bare repository that a payload builds in a directory with
// a harmless name is found too. The walk does not enter objects, refs and logs of a git directory that was there before
// the call, nor what is protected as a whole.
#pragma once

#include <string>
#include <vector>

#include "isolation/tree_walk.h"

namespace coffer::isolation {

struct FoundName {
  std::string path;  // relative to the root
  dev_t dev = 0;
  ino_t ino = 0;
  mode_t mode = 0;
  nlink_t links = 0;
  std::string run_by;
  bool Is(const FoundName& other) const { return dev == other.dev && ino == other.ino; }
};

struct ProjectScan {
  std::vector<FoundName> names;            // protected names; ".git" of every kind among them
  std::vector<FoundName> git_directories;  // "" is the root itself
  std::vector<FoundName> git_parts;        // of those (policy::GitParts), where they exist
};

// Before a call (`before` is null) a tree that is too large, or that cannot be looked through, is refused. After it, with
// what was found before, there is no bound but the call's own, and directories that the payload closed are opened.
Result<ProjectScan> ScanProject(const HostPath& root, const ProjectScan* before = nullptr);

}  // namespace coffer::isolation
