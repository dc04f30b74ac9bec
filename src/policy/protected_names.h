// SPDX-License-Identifier: Apache-2.0
//
// Names in a project that make a program on the host run code later, without a person who says so: git's hooks and
// configuration, settings of editors and agents, files that shells and hook managers read.
//
// In a boundary with --project they are read-only, and a new one is set aside when the call ends
// (call/run/project.h). What people start by name, such as the scripts of package.json or a
// Makefile, is not in the list: a build that could not change them would be of no use. The list is
// by name and by the name of the directory above, and pure; case does not count, because it does
// not on some file systems (folded_name.h).
#pragma once

#include <span>
#include <string_view>

namespace coffer::policy {

struct ProtectedName {
  std::string_view name;
  std::string_view run_by;  // completes "... on this host runs what it says": "git"
  // At the top of a project an empty directory keeps the name from being made while a call runs. Only where such a
  // directory disturbs no program: git does not list it, and the program that reads the name passes over it.
  bool held = false;
  std::string_view in = {};  // only in a directory of this name; empty: in every one
};

// All of them but ".git", which has parts of its own (below).
std::span<const ProtectedName> ProtectedNames();

// ".git" too, and names of which there are families: lefthook-local.yml, mise.test.toml,
// x.code-workspace. `directory` is the name of the directory that holds it. Null if the name is not
// one of them.
const ProtectedName* FindProtectedName(std::string_view name, std::string_view directory = {});

// What in a git directory decides which code git runs. Git reads `commondir` first: it says where configuration and
// hooks are.
struct GitPart {
  std::string_view name;
  bool directory = false;
  std::string_view harmless;  // what a file may hold that stands there only to keep the name
};
std::span<const GitPart> GitParts();

// Settings of other programs in a git directory, by which they start what they say. Null if the name is not one of them.
const ProtectedName* FindNameInGitDirectory(std::string_view name);

// Directories of installed packages. Editors and agents do not read their settings there; git still does.
bool IsPackageDirectory(std::string_view name);

}  // namespace coffer::policy
