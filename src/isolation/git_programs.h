// SPDX-License-Identifier: Apache-2.0
//
// Files of a project that a git configuration makes git run or read: hooks in a directory of the project, configuration
// that is included, filters, drivers, pagers and monitors that are scripts of the project.
//
// The configuration itself is out of the payload's reach (call/run/protected_tree.h). What it names
// is not, unless it is protected too. Which word of a value is a program is the shell's business,
// so every word that is a file of the project counts, but for a first word without a slash, which
// the shell looks up on PATH: it counts in directories of PATH that lie in the project. So do the programs that git and the
// prompts of shells start by themselves (less, ssh, git). Words are those that the shell makes of quotes and backslashes, and
// those between all blanks and quotes. Sections that hold names of branches, addresses and people
// are left out. A program that such a file starts in turn is not found (docs/HONEST_LIMITS.md).
//
// A word that is no file yet is one that a call can make. It counts if it has a slash, or if it is
// the first argument of an interpreter; other words are subcommands and options.
#pragma once

#include <string>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::isolation {

// Paths relative to `root`, or absolute where a link from outside leads into it (links_into.h).
struct GitNames {
  std::vector<std::string>
      files;  // to be protected; hooks and included files also if they are not there yet
  std::vector<std::string> to_come;  // no files yet; git runs or reads what is made there
  std::vector<std::string> on_path;  // no files yet; they would be found on the caller's PATH
};

// `config` is the absolute path of the configuration, and `worktrees` are the absolute directories
// in which git runs what it names. A file that cannot be read names nothing.
GitNames NamesInGitConfig(const HostPath& root, const std::string& config,
                          const std::vector<std::string>& worktrees);

// The same for what the environment adds to the configuration of every repository (GIT_CONFIG_COUNT), and for programs
// that it names itself (GIT_EXTERNAL_DIFF).
GitNames NamesInGitEnvironment(const HostPath& root, const std::vector<std::string>& worktrees);

// What git starts by itself and shells do for their prompts, in directories of the caller's PATH that lie in the tree.
GitNames NamesOnPath(const HostPath& root);

// The configurations that git reads in every repository of this user, absolute: ~/.gitconfig and
// /etc/gitconfig, and those that GIT_CONFIG_GLOBAL and GIT_CONFIG_SYSTEM name.
std::vector<std::string> GlobalGitConfigs();

// The git directory of a repository whose worktree, or which itself, is `directory`, and the common one of a linked
// worktree. Empty if there is no repository.
std::vector<std::string> GitDirectoriesAt(const std::string& directory);

// Those that git reads for a repository whose worktree, or which itself, is `directory`: through a
// `.git` that is a file or a link too, wherever that leads. They say what is to be protected, never
// what is shown. Empty if there is no repository.
std::vector<std::string> GitConfigsAt(const std::string& directory);

// The configuration of the repository that a git directory belongs to; "" if it cannot be read.
std::string TextOfGitConfig(const std::string& git_directory);

}  // namespace coffer::isolation
