// SPDX-License-Identifier: Apache-2.0
//
// The half of a protected tree that runs after the call: finds planted files and sets them aside.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>

#include "base/sys.h"
#include "call/run/protected_tree.h"
#include "call/run/set_aside.h"
#include "isolation/system_paths.h"
#include "policy/protected_names.h"

namespace coffer::call {
namespace {

using isolation::FoundName;

bool Holds(const std::vector<FoundName>& list, const FoundName& found) {
  return std::any_of(list.begin(), list.end(),
                     [&](const FoundName& other) { return other.Is(found); });
}

// True if `path` or a directory above it is one of `names`. Payloads make any number of names, so each costs the same.
bool LiesInOneOf(const std::unordered_set<std::string>& names, std::string path) {
  while (!names.contains(path)) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
      return false;
    }
    path.resize(slash);
  }
  return true;
}

std::string NameBelow(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

}  // namespace

// True if the payload could not have put anything else there: the name was a read-only mount or a
// mount point of its own, and so was every directory above it. What is different now was changed on
// the host.
bool ProtectedTree::IsFixed(const FoundName& found) const {
  const std::string& path = found.path;
  const size_t slash = path.rfind('/');
  const auto mounted = [&](const std::string& name) {
    return read_only_.contains(name) || pinned_.contains(name);
  };
  return !found.above && mounted(path) &&
         (slash == std::string::npos || mounted(path.substr(0, slash)));
}

std::vector<Planted> ProtectedTree::FindPlanted(const isolation::ProjectScan& after) const {
  std::vector<Planted> planted;
  std::unordered_set<std::string> names;
  const auto add = [&](const std::string& path, const std::string& run_by, bool link = false) {
    if (!LiesInOneOf(names, path)) {
      planted.push_back({path, run_by, "", link});
      names.insert(path);
    }
  };
  for (const FoundName& found : after.names) {
    const bool placeholder = found.path.find('/') == std::string::npos &&
                             Placeholder::IsOne(root_.fd.get(), found.path, {});
    if (!placeholder && !IsFixed(found) && !Holds(before_.names, found)) {
      add(found.path, found.run_by);
    }
  }
  for (const FoundName& git : after.git_directories) {
    // Without HEAD git does not take the directory for its own.
    if (!IsFixed(git) && !Holds(before_.git_directories, git)) {
      add(git.above ? git.path : NameBelow(git.path, "HEAD"), "git");
    }
  }
  for (const FoundName& part : after.git_parts) {
    const size_t slash = part.path.rfind('/');
    const std::string head =
        NameBelow(slash == std::string::npos ? "" : part.path.substr(0, slash), "HEAD");
    if (!IsFixed(part) && !Holds(before_.git_parts, part) && !LiesInOneOf(names, head)) {
      add(part.path, "git");
    }
  }
  for (const FoundName& link : after.git_links) {
    if (!IsFixed(link) && !Holds(before_.git_links, link)) {
      add(link.path, "git", !link.above);
    }
  }
  for (const std::string& path : FindMisleadingLists(after)) {
    const size_t known = planted.size();
    add(path, "git");
    if (planted.size() > known) {
      planted.back().names = true;
    }
  }
  for (const std::string& path : watched_) {
    // Behind a link it is the link that was planted.
    const isolation::TreePath found = isolation::FollowInTree(root_, path);
    const char* const run_by = path == "cofferd" || path.ends_with("/cofferd") ? "coffer" : "git";
    if (!found.links.empty()) {
      add(found.links.front(), run_by);
    } else if (found.end == isolation::TreePath::End::kInside) {
      add(path, run_by);
    }
  }
  for (const std::string& path : programs_) {
    const isolation::TreePath found = isolation::FollowInTree(root_, path);
    struct stat info{};
    const bool file = found.end == isolation::TreePath::End::kInside &&
                      ::fstatat(root_.fd.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISREG(info.st_mode);
    const bool on_path = on_path_.contains(path);
    // On PATH there are many such names: a link on the way is one of them only if the last name is there. That one may be a
    // link to what is not there yet.
    if (on_path ? ::fstatat(root_.fd.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
                      S_ISDIR(info.st_mode)
                : !file && found.links.empty()) {
      continue;
    }
    const size_t known = planted.size();
    add(found.links.empty() ? path : found.links.front(), "git");
    if (planted.size() > known) {
      planted.back().program = true;
      planted.back().on_path = on_path;
    }
  }
  return planted;
}

Result<std::vector<Planted>> ProtectedTree::Settle() {
  const OpenedToOwner opened(root_.fd.get());
  placeholders_.clear();
  Result<isolation::ProjectScan> after = isolation::ScanProject(root_, &before_);
  if (!after.ok()) {
    return HostFault("isolation.project",
                     "what the command left cannot be checked: " + after.error().message,
                     "look for new files such as .git, .vscode or .envrc before you use it");
  }
  for (const FoundName& lock : after->git_locks) {
    if (!Holds(before_.git_locks, lock)) {
      left_locks_.push_back(lock.path);
    }
  }
  std::vector<Planted> planted = FindPlanted(*after);
  if (options_.rule == PlantedRule::kKeep) {
    return planted;
  }
  SetAside aside(root_);
  for (Planted& entry : planted) {
    // One that cannot be moved must not keep the others where they are.
    if (Result<std::string> place = aside.Move(entry.path); place.ok()) {
      entry.set_aside = std::move(place).value();
    }
  }
  return planted;
}

}  // namespace coffer::call
