// SPDX-License-Identifier: Apache-2.0
//
// Finds in a tree what makes a program on the host run code later: protected names (policy/protected_names.h) and git
// directories, wherever they are.
//
// A git directory is what git takes for one, by its content: HEAD with objects and refs, or with a
// commondir that says where those are, as in the record of a linked worktree. So a bare repository
// that a payload builds in a directory with a harmless name is found too, also among the objects,
// refs and logs of another one, where a link may lead to it. Names that a branch may have do not
// count among refs and logs: mise.toml is one, .envrc is not. The walk does not enter what is
// protected as a whole.
//
// Git writes its own files through links: a COMMIT_EDITMSG, FETCH_HEAD or logs/HEAD that is one
// makes it write where the link leads. It makes no links in its directory itself, so those in git
// directories are found as well. While a file `NAME.lock` is there, git does not write NAME; no
// branch has such a name. Its index and its list of conflicts tell git what to write in the
// worktree (git_index.h).
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "isolation/tree_walk.h"

namespace coffer::isolation {

struct FoundName {
  std::string path;  // relative to the root; if `above`, that of a directory in which it lies
  dev_t dev = 0;
  ino_t ino = 0;
  mode_t mode = 0;
  nlink_t links = 0;
  struct timespec changed{};  // the kernel's time of change, which no program sets
  std::string run_by;
  bool above = false;  // it lies too deep to be named, or is one of too many
  // The kind counts too: file systems reuse the inode number of a removed file.
  bool Is(const FoundName& other) const {
    return dev == other.dev && ino == other.ino && ((mode ^ other.mode) & S_IFMT) == 0;
  }
};

struct ProjectScan {
  std::vector<FoundName> names;            // protected names; ".git" of every kind among them
  std::vector<FoundName> git_directories;  // "" is the root itself
  std::vector<FoundName> git_parts;        // of those (policy::GitParts), where they exist
  std::vector<FoundName> git_links;        // links in git directories that were there before
  std::vector<FoundName> git_locks;        // names in those by which git keeps others out
  std::vector<FoundName> git_indexes;      // in those: indexes, and shared parts of split ones
  std::vector<FoundName> git_conflicts;    // in those: lists for `rerere`
};

// Whether git takes the directory for its own, by its content.
bool LooksLikeGit(const TreeWalk::Directory& directory);

// Before a call (`before` is null) a tree that is too large, or that cannot be looked through, is
// refused. After it, with the scan from before, there is no bound but the call's own, and
// directories that the payload closed are opened.
Result<ProjectScan> ScanProject(const HostPath& root, const ProjectScan* before = nullptr);

}  // namespace coffer::isolation
