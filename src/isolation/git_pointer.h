// SPDX-License-Identifier: Apache-2.0
//
// Where the git directory of a linked worktree or a submodule is: there `.git` is a file that names another directory.
//
// That file may be a payload's work, or come with an archive, and must not decide what else a boundary shows. It is
// followed only if the place it names points back: the worktree's record there names this project, or the submodule's
// configuration does. A payload that can write one of the two sides gains nothing; one that can write both has both
// already. Also demanded: the same owner as the project, no other user may write there, no link on the way, and
// git's own layout (COMMON/worktrees/NAME), so that no text in it chooses the common directory.
#pragma once

#include <string>

#include "base/result.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

struct GitPointer {
  std::string directory;  // what `.git` names
  std::string common;     // objects, refs, configuration and hooks: the same for a submodule
  bool worktree() const { return directory != common; }
};

// The error says why the file is not followed.
Result<GitPointer> FollowGitFile(const HostPath& project);

}  // namespace coffer::isolation
