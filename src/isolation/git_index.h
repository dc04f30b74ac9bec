// SPDX-License-Identifier: Apache-2.0
//
// Files of a git directory by which git is told names of the worktree: the index, and the list of conflicts that
// `rerere` resolves (MERGE_RR).
//
// Git checks a name when it adds it to an index or takes it out of a commit. It does not check what an index
// holds that it finds: `git checkout .` and `git restore .` write `.git/config`, `../x` and `/home/u/.profile` if
// the index says so. Names in MERGE_RR are not checked at all: the next `git commit` copies such a file to
// .git/rr-cache, or replaces it by what lies there. A payload that may write to a git directory writes both
// files. So both are read when a call has ended, in git's own grammar (gitformat-index(5)), and one that holds a name
// which git itself would not have put there is not left in its place.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coffer::isolation {

// True if git would take the path into an index: relative, no empty, "." or ".." component, and none that is `.git`
// on any file system.
bool IsWorktreeName(std::string_view path);

// True if every name in an index, or in the shared part of a split one, is a worktree name. False also where the index
// could be read in two ways: a length that is not that of the name, offsets that lead to other entries. A
// text that git does not take for an index at all holds no names. `hash_size` is that of the repository's object ids.
bool IndexKeepsToWorktree(std::string_view index, size_t hash_size);

// The paths in a list of conflicts; nothing if it is not what git writes.
std::optional<std::vector<std::string>> ConflictPaths(std::string_view list, size_t hash_size);

}  // namespace coffer::isolation
