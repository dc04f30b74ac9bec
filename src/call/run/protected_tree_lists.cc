// SPDX-License-Identifier: Apache-2.0
//
// The part of a protected tree that reads, after the call, what tells git names of the worktree.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/regular_file.h"
#include "base/split.h"
#include "base/sys.h"
#include "call/run/protected_tree.h"
#include "isolation/git_config.h"
#include "isolation/git_index.h"
#include "isolation/git_programs.h"
#include "isolation/runtime/real_path.h"
#include "policy/protected_names.h"

namespace coffer::call {
namespace {

using isolation::FoundName;

// Some two million files. A call can make any number of lists, with holes in them.
constexpr size_t kLongestList = 256 << 20;
constexpr size_t kLongestLists = 512 << 20;

size_t HashSizeOf(const std::string& config) {
  std::string format = isolation::GitConfigValue(config, "extensions", "objectformat");
  std::transform(format.begin(), format.end(), format.begin(), LowerCase);
  return format == "sha256" ? 32 : 20;
}

bool WasLeftAlone(const std::vector<FoundName>& before, const FoundName& found) {
  return std::any_of(before.begin(), before.end(), [&](const FoundName& other) {
    return other.Is(found) && other.changed.tv_sec == found.changed.tv_sec &&
           other.changed.tv_nsec == found.changed.tv_nsec;
  });
}

bool NamesSettings(const std::string& path) {
  std::string_view directory;
  for (const std::string_view name : SplitText(path, '/')) {
    if (policy::FindProtectedName(name, directory) != nullptr) {
      return true;
    }
    directory = name;
  }
  return false;
}

class ListFiles {
 public:
  explicit ListFiles(const isolation::HostPath& root) : root_(root) {}

  // Nothing if it cannot be read, or if it and those before it are too long.
  std::optional<std::string> Read(const FoundName& list) {
    const Result<UniqueFd> found = sys::OpenNoLinks(root_.fd.get(), list.path, O_PATH);
    const Result<UniqueFd> file = found.ok() ? sys::ReopenRegular(found->get(), list.path, O_RDONLY)
                                             : Result<UniqueFd>(found.error());
    Result<std::string> text = file.ok() ? sys::ReadFd(file->get(), std::min(left_, kLongestList))
                                         : Result<std::string>(file.error());
    if (!text.ok()) {
      return std::nullopt;
    }
    left_ -= text->size();
    return std::move(text).value();
  }

 private:
  const isolation::HostPath& root_;
  size_t left_ = kLongestLists;
};

}  // namespace

// Git copies the files that it names, and writes them. So each has to be a file of the worktree that the call could have
// written itself, and no link may lead there. Where the worktree is not known, the list is as it was.
bool ProtectedTree::AreConflictsHere(const FoundName& list, const std::string& text,
                                     const std::string& config) const {
  const auto paths = isolation::ConflictPaths(text, HashSizeOf(config));
  if (!paths) {
    return false;
  }
  const std::string git = Above(list.path);
  if (isolation::BaseName(git) != ".git" ||
      !isolation::GitConfigValue(config, "core", "worktree").empty()) {
    return WasLeftAlone(before_.git_conflicts, list);
  }
  const std::string worktree = Above(git);
  return std::all_of(paths->begin(), paths->end(), [&](const std::string& path) {
    const std::string whole = worktree.empty() ? path : worktree + "/" + path;
    return isolation::IsWorktreeName(path) && !NamesSettings(path) && !read_only_.contains(whole) &&
           !LiesInReadOnly(whole) && isolation::FollowInTree(root_, whole).links.empty();
  });
}

std::vector<std::string> ProtectedTree::FindMisleadingLists(
    const isolation::ProjectScan& after) const {
  std::vector<std::string> misleading;
  ListFiles files(root_);
  const auto look = [&](const FoundName& list, const auto& is_honest) {
    if (IsReadOnly(list.path)) {
      return;  // another worktree's record
    }
    const std::optional<std::string> text = list.above ? std::nullopt : files.Read(list);
    if (text && text->empty()) {
      return;
    }
    if (!text ||
        !is_honest(*text, isolation::TextOfGitConfig(root_.path + "/" + Above(list.path)))) {
      misleading.push_back(list.path);
    }
  };
  for (const FoundName& index : after.git_indexes) {
    look(index, [&](const std::string& text, const std::string& config) {
      return isolation::IndexKeepsToWorktree(text, HashSizeOf(config));
    });
  }
  for (const FoundName& list : after.git_conflicts) {
    look(list, [&](const std::string& text, const std::string& config) {
      return AreConflictsHere(list, text, config);
    });
  }
  return misleading;
}

}  // namespace coffer::call
