// SPDX-License-Identifier: Apache-2.0
#include "call/run/protected_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/path_words.h"
#include "base/sys.h"
#include "base/text.h"
#include "isolation/runtime/real_path.h"
#include "policy/protected_names.h"

namespace coffer::call {
namespace {

using isolation::FoundName;
using isolation::HostPath;

constexpr size_t kMostMounts = 384;  // of the 512 that a boundary can have

std::string PathOf(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

Error OtherName(const std::string& path) {
  return Refused("policy.project.hard_link",
                 fmt::format("{} has a second name, by which it could be changed",
                             PathInWords(Printable(path))),
                 "replace it by a copy: cp -p FILE FILE.new && mv FILE.new FILE");
}

// A link as something to mount: the link itself, not where it leads.
Result<HostPath> ExamineLink(std::string path) {
  HostPath link;
  TRY_ASSIGN(link.fd, sys::OpenNoLinks(AT_FDCWD, path, O_PATH | O_NOFOLLOW));
  struct stat info{};
  if (::fstat(link.fd.get(), &info) != 0 || !S_ISLNK(info.st_mode)) {
    return Refused("policy.project.changed",
                   fmt::format("{} is not a link any more", PathInWords(path)), "try again");
  }
  link.path = std::move(path);
  link.dev = info.st_dev;
  link.ino = info.st_ino;
  return link;
}

// No file below a protected directory may have a second name.
Status CheckOnlyNames(const HostPath& directory) {
  return isolation::TreeWalk(
             directory, "files with a second name",
             [&](const isolation::TreeWalk::Directory& here) -> Status {
               for (const sys::DirEntry& entry : here.entries) {
                 struct stat info{};
                 if (::fstatat(here.fd, entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                     S_ISREG(info.st_mode) && info.st_nlink > 1) {
                   return OtherName(directory.path + "/" + PathOf(here.walk.Path(), entry.name));
                 }
               }
               return {};
             })
      .Run();
}

}  // namespace

Status ProtectedTree::Mount(const std::string& path, policy::Access access) {
  if (access == policy::Access::kRead ? !read_only_.insert(path).second
                                      : read_only_.contains(path) || !pinned_.insert(path).second) {
    return {};
  }
  struct stat info{};
  isolation::OpenedMount mount;
  const std::string whole = root_.path + "/" + path;
  if (::fstatat(AT_FDCWD, whole.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(info.st_mode)) {
    TRY_ASSIGN(mount.path, ExamineLink(whole));
    mount.link = true;
  } else {
    isolation::SystemPaths system;
    TRY_ASSIGN(mount.path,
               isolation::ExamineHostPath(whole, isolation::BindReason::kMount, system));
  }
  // Its files belong to the boundary exactly if those of the whole tree do.
  mount.path.owner = root_.owner;
  mount.path.group = root_.group;
  mount.at = whole;
  mount.access = access;
  mount.within = true;
  if (access == policy::Access::kRead && mount.path.directory) {
    TRY(CheckOnlyNames(mount.path));
  }
  mounts_.push_back(std::move(mount));
  if (mounts_.size() > kMostMounts) {
    return Refused("policy.project.size",
                   fmt::format("{} holds too many repositories and settings to be protected",
                               PathInWords(root_.path)),
                   "name a smaller directory");
  }
  return {};
}

std::string ProtectedTree::Above(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Every directory from the top down to `path`: none of them can be renamed then.
Status ProtectedTree::Pin(const std::string& path) {
  if (path.empty()) {
    return {};
  }
  TRY(Pin(Above(path)));
  return Mount(path, policy::Access::kWrite);
}

Status ProtectedTree::Protect(const FoundName& found) {
  if (S_ISREG(found.mode) && found.links > 1) {
    return OtherName(root_.path + "/" + found.path);
  }
  if (!S_ISREG(found.mode) && !S_ISDIR(found.mode) && !S_ISLNK(found.mode)) {
    return {};  // sockets and fifos hold no settings
  }
  // Where a link or a .git file leads depends on where it is.
  if (S_ISLNK(found.mode) || (S_ISREG(found.mode) && isolation::BaseName(found.path) == ".git")) {
    TRY(Pin(Above(found.path)));
  }
  const bool known = read_only_.contains(found.path);
  TRY(Mount(found.path, policy::Access::kRead));
  if (S_ISDIR(found.mode)) {
    return known ? Status() : ProtectLinksIn(found.path);
  }
  return S_ISLNK(found.mode) ? ProtectTarget(found) : Status();
}

Status ProtectedTree::Hold(const std::string& directory, const std::string& name,
                           const Placeholder::Kind& kind) {
  const std::string path = PathOf(directory, name);
  TRY_ASSIGN(const UniqueFd parent,
             sys::OpenNoLinks(root_.fd.get(), directory.empty() ? "." : directory,
                              O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(Placeholder placeholder, Placeholder::Make(parent.get(), name, kind));
  if (!placeholder.made()) {
    watched_.insert(path);
    return {};
  }
  placeholders_.push_back(std::move(placeholder));
  return Mount(path, policy::Access::kRead);
}

Status ProtectedTree::ProtectNames() {
  const std::vector<FoundName> names = before_.names;
  for (const FoundName& found : names) {
    const bool git_directory =
        std::any_of(before_.git_directories.begin(), before_.git_directories.end(),
                    [&](const FoundName& git) { return git.path == found.path; });
    if (!git_directory) {
      TRY(Protect(found));
    }
  }
  for (const std::string& path : options_.more) {
    TRY(ProtectNamed(path));
  }
  return {};
}

bool ProtectedTree::IsReadOnly(const std::string& path) const {
  const auto holds = [&](const std::string& directory) {
    return isolation::IsAtOrBelow(path, directory);
  };
  return std::any_of(options_.read_only.begin(), options_.read_only.end(), holds) &&
         std::none_of(options_.writable.begin(), options_.writable.end(), holds);
}

Status ProtectedTree::ProtectGitDirectories() {
  for (const FoundName& git : before_.git_directories) {
    if (IsReadOnly(git.path)) {
      continue;  // as a whole: another worktree's record
    }
    TRY(Pin(git.path));
    for (const policy::GitPart& part : policy::GitParts()) {
      const std::string path = PathOf(git.path, part.name);
      const auto found = std::find_if(before_.git_parts.begin(), before_.git_parts.end(),
                                      [&](const FoundName& other) { return other.path == path; });
      const Placeholder::Kind kind{part.directory, std::string(part.harmless)};
      TRY_ASSIGN(const UniqueFd parent,
                 sys::OpenNoLinks(root_.fd.get(), git.path.empty() ? "." : git.path,
                                  O_PATH | O_DIRECTORY));
      const bool left_over = found != before_.git_parts.end() &&
                             Placeholder::IsOne(parent.get(), std::string(part.name), kind);
      if (found != before_.git_parts.end() && !left_over) {
        TRY(Protect(*found));
      } else if (options_.rule == PlantedRule::kSetAside || left_over) {
        TRY(Hold(git.path, std::string(part.name), kind));
      }
    }
  }
  return {};
}

Status ProtectedTree::HoldNames() {
  if (!options_.hold_names || options_.rule == PlantedRule::kKeep) {
    return {};
  }
  std::vector<std::string> held = {".git"};
  for (const policy::ProtectedName& known : policy::ProtectedNames()) {
    if (known.held) {
      held.emplace_back(known.name);
    }
  }
  for (const std::string& name : held) {
    const bool there = std::any_of(before_.names.begin(), before_.names.end(),
                                   [&](const FoundName& found) { return found.path == name; });
    if (!there) {
      TRY(Hold("", name, {}));
      if (!watched_.contains(name)) {
        held_names_.push_back(name);
      }
    }
  }
  return {};
}

// A pin is a writable mount. In what is read-only it would open that again, and nothing can be renamed there anyway.
void ProtectedTree::DropPinsInReadOnly() {
  const auto is_writable = [&](const std::string& path) {
    return std::find(options_.writable.begin(), options_.writable.end(), path) !=
           options_.writable.end();
  };
  std::erase_if(mounts_, [&](const isolation::OpenedMount& mount) {
    if (mount.access == policy::Access::kRead) {
      return false;
    }
    std::string path = mount.at.substr(root_.path.size() + 1);
    while (!path.empty() && !read_only_.contains(path) && !is_writable(path)) {
      path = Above(path);
    }
    return !path.empty() && !is_writable(path);
  });
}

std::vector<std::string> ProtectedTree::git_directories() const {
  std::vector<std::string> paths;
  paths.reserve(before_.git_directories.size());
  for (const FoundName& git : before_.git_directories) {
    paths.push_back(git.path.empty() ? root_.path : root_.path + "/" + git.path);
  }
  return paths;
}

std::vector<std::string> ProtectedTree::protected_names() const {
  std::vector<std::string> paths;
  paths.reserve(before_.names.size());
  for (const FoundName& found : before_.names) {
    paths.push_back(root_.path + "/" + found.path);
  }
  return paths;
}

Result<ProtectedTree> ProtectedTree::Open(HostPath root, const Options& options,
                                          std::vector<isolation::OpenedMount>& mounts) {
  ProtectedTree tree;
  tree.root_ = std::move(root);
  tree.options_ = options;
  TRY_ASSIGN(tree.before_, isolation::ScanProject(tree.root_));
  // Placeholders at the top that a crash left, or another call uses: joined for a moment, which removes the former.
  std::erase_if(tree.before_.names, [&](const FoundName& found) {
    return found.path.find('/') == std::string::npos &&
           Placeholder::IsOne(tree.root_.fd.get(), found.path, {}) &&
           Placeholder::Make(tree.root_.fd.get(), found.path, {}).ok();
  });
  for (const std::string& path : options.read_only) {
    TRY(tree.Mount(path, policy::Access::kRead));
  }
  for (const std::string& path : options.writable) {
    TRY(tree.Mount(path, policy::Access::kWrite));
  }
  TRY(tree.ProtectNames());
  TRY(tree.ProtectPrograms());
  TRY(tree.ProtectGitDirectories());
  TRY(tree.HoldNames());
  tree.DropPinsInReadOnly();
  // From the outside in.
  std::stable_sort(tree.mounts_.begin(), tree.mounts_.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  std::move(tree.mounts_.begin(), tree.mounts_.end(), std::back_inserter(mounts));
  tree.mounts_.clear();
  return tree;
}

}  // namespace coffer::call
