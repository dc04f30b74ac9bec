// SPDX-License-Identifier: Apache-2.0
//
// The part of a protected tree that follows names: what a link leads to, and what a git configuration makes git run.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>

#include "base/path_words.h"
#include "base/text.h"
#include "call/run/protected_tree.h"
#include "isolation/links_into.h"
#include "isolation/runtime/real_path.h"

namespace coffer::call {

using isolation::FoundName;

Status ProtectedTree::ProtectLinksTo(const isolation::TreePath& target) {
  for (const std::string& on_the_way : target.links) {
    if (!LiesInReadOnly(on_the_way)) {
      TRY(Pin(Above(on_the_way)));
      TRY(Mount(on_the_way, policy::Access::kRead));
    }
  }
  for (const std::string& directory : target.left) {
    struct stat info{};
    const bool there =
        ::fstatat(root_.fd.get(), directory.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    TRY(there ? Pin(directory) : Watch(directory));
  }
  return {};
}

// Where a link leads is protected if it lies in the tree, and so is every link on the way. Elsewhere it is not shown.
Status ProtectedTree::ProtectTarget(const FoundName& link) {
  const isolation::TreePath target = isolation::FollowInTree(root_, link.path);
  TRY(ProtectLinksTo(target));
  switch (target.end) {
    case isolation::TreePath::End::kOutside:
      return {};
    case isolation::TreePath::End::kMissing:
      return Watch(target.path);
    case isolation::TreePath::End::kInside:
      break;
  }
  if (target.path.empty()) {
    return Refused(
        "policy.project.link",
        fmt::format("{} leads to the project itself, where every file is writable",
                    PathInWords(Printable(
                        link.path.starts_with('/') ? link.path : root_.path + "/" + link.path))),
        "remove the link, or the setting that names it");
  }
  return ProtectPath(target.path);
}

bool ProtectedTree::LiesInReadOnly(const std::string& path) const {
  std::string above = Above(path);
  while (!above.empty() && !read_only_.contains(above)) {
    above = Above(above);
  }
  return !above.empty();
}

// A hook is often a link to a script of the project. What links in a protected directory lead to is
// protected as well, but for those that lead to the tree's own top.
Status ProtectedTree::ProtectLinksIn(const std::string& directory) {
  isolation::SystemPaths system;
  TRY_ASSIGN(const isolation::HostPath opened,
             isolation::ExamineHostPath(root_.path + "/" + directory, isolation::BindReason::kMount,
                                        system));
  std::vector<FoundName> links;
  const auto look = [&](const isolation::TreeWalk::Directory& here) -> Status {
    const std::string below = here.walk.Path();
    for (const sys::DirEntry& entry : here.entries) {
      if (entry.type == DT_LNK) {
        links.emplace_back().path =
            directory + "/" + (below.empty() ? entry.name : below + "/" + entry.name);
      }
    }
    return {};
  };
  TRY(isolation::TreeWalk(opened, "links", look).Run());
  if (!links.empty()) {
    TRY(Pin(Above(directory)));  // moved elsewhere, they would lead elsewhere
  }
  for (const FoundName& link : links) {
    const isolation::TreePath target = isolation::FollowInTree(root_, link.path);
    if (target.end != isolation::TreePath::End::kInside || !target.path.empty()) {
      TRY(ProtectTarget(link));
    }
  }
  return {};
}

// A path that must not come into being. What there is of it stays where it is.
Status ProtectedTree::Watch(const std::string& path) {
  watched_.insert(path);
  struct stat info{};
  std::string above = Above(path);
  while (!above.empty() &&
         ::fstatat(root_.fd.get(), above.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    above = Above(above);
  }
  return Pin(above);
}

// A path and everything that decides where it leads.
Status ProtectedTree::ProtectPath(const std::string& path) {
  FoundName found;
  struct stat info{};
  found.path = path;
  if (::fstatat(root_.fd.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return Watch(path);
  }
  TRY(Pin(Above(path)));
  found.dev = info.st_dev;
  found.ino = info.st_ino;
  found.mode = info.st_mode;
  found.links = info.st_nlink;
  found.run_by = "git";
  before_.names.push_back(found);
  return Protect(found);
}

// What the configurations of the tree's repositories make git run, if it lies in the tree. A `.git` that is a file or a
// link leads to one that may lie elsewhere.
Status ProtectedTree::ProtectPrograms() {
  std::vector<std::string> pointers;
  for (const FoundName& name : before_.names) {
    if (isolation::BaseName(name.path) == ".git" && !S_ISDIR(name.mode)) {
      pointers.push_back(std::string(isolation::DirName(root_.path + "/" + name.path)));
    }
  }
  isolation::LinksInto links(root_);
  for (const std::string& worktree : pointers) {
    for (const std::string& config : isolation::GitConfigsAt(worktree)) {
      TRY(ProtectGitNames(isolation::NamesInGitConfig(root_, config, {root_.path, worktree})));
    }
    links.AddRepository(worktree);
  }
  for (const std::string& link : links.links()) {
    TRY(ProtectNamed(link));
  }
  for (const FoundName& git : before_.git_directories) {
    const std::string directory = git.path.empty() ? root_.path : root_.path + "/" + git.path;
    for (const char* name : {"config", "config.worktree"}) {
      TRY(ProtectGitNames(isolation::NamesInGitConfig(
          root_, directory + "/" + name,
          {root_.path, std::string(isolation::DirName(directory)), directory})));
    }
  }
  return ProtectGitNames({{}, options_.programs, options_.on_path});
}

Status ProtectedTree::ProtectGitNames(const isolation::GitNames& names) {
  for (const std::string& path : names.files) {
    TRY(ProtectNamed(path));
  }
  for (const std::string& path : names.to_come) {
    TRY(WatchProgram(path));
  }
  const std::set<std::string> named = programs_;
  for (const std::string& path : names.on_path) {
    TRY(WatchProgram(path));
  }
  std::set_difference(programs_.begin(), programs_.end(), named.begin(), named.end(),
                      std::inserter(on_path_, on_path_.end()));
  return {};
}

// A program that is not there yet. Nothing is mounted for it: whatever the payload moves, a file
// that is there in the end was made there.
Status ProtectedTree::WatchProgram(const std::string& path) {
  const isolation::TreePath target = isolation::FollowInTree(root_, path);
  TRY(ProtectLinksTo(target));
  if (target.end != isolation::TreePath::End::kOutside && !target.path.empty()) {
    programs_.insert(target.path);
  }
  return {};
}

// A path that a configuration names may itself go through links.
Status ProtectedTree::ProtectNamed(const std::string& path) {
  FoundName named;
  named.path = path;
  return ProtectTarget(named);
}

}  // namespace coffer::call
