// SPDX-License-Identifier: Apache-2.0
#include "isolation/links_into.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "isolation/git_programs.h"
#include "isolation/runtime/real_path.h"
#include "isolation/system_paths.h"
#include "isolation/tree_path.h"
#include "policy/protected_names.h"

namespace coffer::isolation {
namespace {

constexpr int kDeepestModule = 8;

// Through links, as the host's programs do it. An error if it is no directory, or cannot be read.
Result<std::vector<sys::DirEntry>> EntriesOf(const std::string& directory) {
  TRY_ASSIGN(const UniqueFd opened, sys::Open(directory, O_RDONLY | O_DIRECTORY));
  return sys::ListDir(opened.get());
}

std::string PathIn(const std::string& directory, std::string_view name) {
  return (directory == "/" ? "" : directory) + "/" + std::string(name);
}

bool IsThere(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace

void LinksInto::Add(const std::string& path) {
  entries_ = 0;
  Look(path, 0);
}

void LinksInto::Follow(const std::string& path) { Look(path, kDeepest); }

void LinksInto::Look(const std::string& path, int depth) {
  const TreePath found = FollowInTree(root_, path);
  const bool inside = found.end != TreePath::End::kOutside;
  if (inside && found.path.empty() && depth > 0) {
    to_root_.insert(path);
  } else if (inside || !found.links.empty() || !found.left.empty()) {
    links_.insert(path);
  }
  if (!inside && depth < kDeepest) {
    List(path, depth);
  }
}

void LinksInto::List(const std::string& directory, int depth) {
  const Result<std::vector<sys::DirEntry>> entries = EntriesOf(directory);
  if (!entries.ok()) {
    return;
  }
  for (const sys::DirEntry& entry : *entries) {
    if (!HasRoom(directory, entries_)) {
      return;
    }
    const std::string path = PathIn(directory, entry.name);
    if (entry.type == DT_LNK || entry.type == DT_UNKNOWN) {
      Look(path, depth + 1);
    } else if (entry.type == DT_DIR && depth + 1 < kDeepest && path != root_.path) {
      List(path, depth + 1);
    }
  }
}

bool LinksInto::HasRoom(const std::string& directory, size_t& count) {
  if (++count <= most_entries_) {
    return true;
  }
  cut_ = cut_.empty() ? directory : cut_;
  return false;
}

void LinksInto::AddName(const std::string& directory, const std::string& name) {
  const policy::ProtectedName* const known = policy::FindProtectedName(name, BaseName(directory));
  const std::string path = PathIn(directory, name);
  if (known == nullptr || path == root_.path) {
    return;
  }
  if (known->name == ".git") {
    Follow(path);  // what is in it is AddRepository's
  } else {
    Add(path);
  }
}

void LinksInto::AddAbove() {
  std::string at = root_.path;
  while (at != "/") {
    at = std::string(DirName(at));
    if (const Result<std::vector<sys::DirEntry>> entries = EntriesOf(at); entries.ok()) {
      for (const sys::DirEntry& entry : *entries) {
        AddName(at, entry.name);
      }
    } else {
      // Closed to listing: names in it can be opened all the same.
      for (const policy::ProtectedName& known : policy::ProtectedNames()) {
        AddName(at, std::string(known.name));
      }
      AddName(at, ".git");
    }
    AddRepository(at);
  }
}

void LinksInto::AddRepository(const std::string& directory) {
  for (const std::string& git : GitDirectoriesAt(directory)) {
    AddGitDirectory(git);
  }
}

void LinksInto::AddGitDirectory(const std::string& git) {
  if (!repositories_.insert(git).second) {
    return;
  }
  for (const policy::GitPart& part : policy::GitParts()) {
    Add(PathIn(git, part.name));
  }
  if (IsAtOrBelow(git, root_.path)) {
    return;  // what lies deeper is found with the project's own repositories
  }
  const std::string worktrees = git + "/worktrees";
  if (const Result<std::vector<sys::DirEntry>> records = EntriesOf(worktrees); records.ok()) {
    for (const sys::DirEntry& record : *records) {
      const std::string config = PathIn(worktrees, record.name) + "/config.worktree";
      Follow(PathIn(worktrees, record.name) + "/commondir");
      Follow(config);
      configs_.push_back(config);
    }
  }
  AddModules(git + "/modules", 0);
}

// The name of a submodule is a path.
void LinksInto::AddModules(const std::string& directory, int depth) {
  const Result<std::vector<sys::DirEntry>> entries = EntriesOf(directory);
  if (!entries.ok() || IsAtOrBelow(directory, root_.path)) {
    return;
  }
  for (const sys::DirEntry& entry : *entries) {
    const std::string path = PathIn(directory, entry.name);
    if (!HasRoom(directory, modules_)) {
      return;
    }
    if (entry.type == DT_LNK) {
      continue;  // git makes none here, and they could go round in circles
    }
    if (IsThere(path + "/HEAD")) {
      configs_.push_back(path + "/config");
      AddGitDirectory(path);
    } else if (entry.type != DT_REG && depth < kDeepestModule) {
      AddModules(path, depth + 1);
    }
  }
}

}  // namespace coffer::isolation
