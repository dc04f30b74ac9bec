// SPDX-License-Identifier: Apache-2.0
#include "isolation/project_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/path_words.h"
#include "base/split.h"
#include "isolation/runtime/real_path.h"
#include "policy/folded_name.h"
#include "policy/protected_names.h"

namespace coffer::isolation {
namespace {

constexpr size_t kMostFound = 4096;
// After a call: of the path of a directory. A payload makes paths of megabytes and a million names.
// What lies deeper, and what comes after so many, is named by a directory above it.
constexpr size_t kLongestFound = 1024;
constexpr size_t kManyFound = 65536;
constexpr size_t kLongestOfMany = 256;  // the longest name, and a slash
constexpr size_t kWholePath = SIZE_MAX;

bool HasEntry(const std::vector<sys::DirEntry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const sys::DirEntry& entry) { return entry.name == name; });
}

bool IsBelowPackages(const std::string& path) {
  const std::vector<std::string_view> parts = SplitText(path, '/');
  return std::any_of(parts.begin(), parts.end(), policy::IsPackageDirectory);
}

class Scan {
 public:
  Scan(const HostPath& root, const ProjectScan* before) : root_(root), before_(before) {}

  Status Look(const TreeWalk::Directory& directory) {
    Place(directory);
    std::erase_if(directory.entries, [&](const sys::DirEntry& entry) {
      return status_.ok() && IsProtected(directory, entry);
    });
    TRY(std::move(status_));
    status_ = {};
    if (LooksLikeGit(directory)) {
      TRY(AddGitDirectory(directory));
    }
    return git_.empty() ? Status() : AddLinksAndLocks(directory);
  }

  ProjectScan Take() { return std::move(scan_); }

 private:
  // Which git directories the walk is in, and whether among the refs or logs of one. It goes down
  // before it goes on, so a directory that is no deeper has left them.
  void Place(const TreeWalk::Directory& directory) {
    const size_t depth = directory.walk.depth();
    while (!git_.empty() && git_.back() >= depth) {
      git_.pop_back();
    }
    if (store_ && *store_ >= depth) {
      store_.reset();
    }
    const bool store = directory.name == "refs" || directory.name == "logs";
    if (!store_ && store && !git_.empty() && git_.back() + 1 == depth) {
      store_ = depth;
    }
  }

  // Adds a protected name; true if it is not to be entered.
  bool IsProtected(const TreeWalk::Directory& directory, const sys::DirEntry& entry) {
    // The root has no name in the walk; a project may be what some names count in (.github).
    const std::string_view in =
        directory.walk.depth() == 0 ? BaseName(root_.path) : std::string_view(directory.name);
    const policy::ProtectedName* const known = policy::FindProtectedName(entry.name, in);
    if (known == nullptr) {
      return false;
    }
    const bool git = known->name == ".git";
    const bool branch =
        store_ && !entry.name.starts_with('.');  // no part of a ref begins with a dot
    if (!git && (branch || IsBelowPackages(PathOf(directory, kLongestFound).first))) {
      return false;
    }
    status_ = Add(directory, entry.name, known->run_by, scan_.names);
    return !git;
  }

  Status AddGitDirectory(const TreeWalk::Directory& directory) {
    TRY_ASSIGN(const bool known, IsKnown(directory));
    TRY(Add(directory, "", "git", scan_.git_directories));
    for (const policy::GitPart& part : policy::GitParts()) {
      if (HasEntry(directory.entries, part.name)) {
        TRY(Add(directory, std::string(part.name), "git", scan_.git_parts));
      }
    }
    TRY(AddSettingsInGit(directory));
    if (known) {
      TRY(AddListsOfNames(directory));
      git_.push_back(directory.walk.depth());
      std::erase_if(directory.entries,
                    [](const sys::DirEntry& entry) { return entry.name == "hooks"; });
    }
    return {};
  }

  Status AddSettingsInGit(const TreeWalk::Directory& directory) {
    Status status;
    std::erase_if(directory.entries, [&](const sys::DirEntry& entry) {
      const policy::ProtectedName* const known =
          status.ok() ? policy::FindNameInGitDirectory(entry.name) : nullptr;
      if (known != nullptr) {
        status = Add(directory, entry.name, known->run_by, scan_.names);
      }
      return known != nullptr;
    });
    return status;
  }

  // There are few directories of this kind, so their whole paths are kept.
  Status AddListsOfNames(const TreeWalk::Directory& directory) {
    for (const sys::DirEntry& entry : directory.entries) {
      const std::string folded = policy::FoldedName(entry.name);
      const bool index = folded == "index" || folded.starts_with("sharedindex.");
      if (index && before_ == nullptr) {
        continue;  // all of them are read afterwards, changed or not
      }
      if (entry.type != DT_LNK && (index || folded == "merge_rr")) {
        TRY(Add(directory, entry.name, "git", index ? scan_.git_indexes : scan_.git_conflicts,
                kWholePath));
      }
    }
    return {};
  }

  Status AddLinksAndLocks(const TreeWalk::Directory& directory) {
    for (const sys::DirEntry& entry : directory.entries) {
      if (entry.type == DT_LNK) {
        TRY(Add(directory, entry.name, "git", scan_.git_links));
      } else if (entry.name.ends_with(".lock")) {
        TRY(Add(directory, entry.name, "git", scan_.git_locks));
      }
    }
    return {};
  }

  // A payload can make any directory look like git's: what it made is looked through like the rest.
  Result<bool> IsKnown(const TreeWalk::Directory& directory) const {
    FoundName here;
    struct stat info{};
    if (::fstat(directory.fd, &info) != 0) {
      return HostFault("isolation.project", "cannot look at a directory");
    }
    here.dev = info.st_dev;
    here.ino = info.st_ino;
    here.mode = info.st_mode;
    return before_ == nullptr ||
           std::any_of(before_->git_directories.begin(), before_->git_directories.end(),
                       [&](const FoundName& known) { return known.Is(here); });
  }

  // `name` in the directory, or the directory itself.
  Status Add(const TreeWalk::Directory& directory, const std::string& name, std::string_view run_by,
             std::vector<FoundName>& list, size_t longest = kLongestFound) {
    struct stat info{};
    const int answer = name.empty()
                           ? ::fstat(directory.fd, &info)
                           : ::fstatat(directory.fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW);
    if (answer != 0) {
      return {};  // gone meanwhile
    }
    // After a call everything counts: a payload must not hide one name among thousands.
    if (before_ == nullptr && list.size() >= kMostFound) {
      return Refused(
          "policy.project.size",
          PathInWords(root_.path) + " holds too many repositories and settings to be protected",
          "name a smaller directory");
    }
    auto [path, whole] = PathOf(directory, list.size() < kManyFound ? longest : kLongestOfMany);
    if (whole && !name.empty()) {
      path += (path.empty() ? "" : "/") + name;
    } else if (!whole && !list.empty() && list.back().above && list.back().path == path) {
      list.back().ino = 0;  // stands for both, so it is none that was there before
      return {};
    }
    list.push_back({std::move(path), info.st_dev, info.st_ino, info.st_mode, info.st_nlink,
                    info.st_ctim, std::string(run_by), !whole});
    return {};
  }

  // Its path, and whether that is the whole of it.
  std::pair<std::string, bool> PathOf(const TreeWalk::Directory& directory, size_t most) const {
    if (before_ == nullptr) {
      return {directory.walk.Path(), true};
    }
    std::string path;
    const bool whole = directory.walk.ShortPath(most, path);
    return {std::move(path), whole};
  }

  const HostPath& root_;
  const ProjectScan* before_;  // null: this is the scan before the call
  ProjectScan scan_;
  std::vector<size_t> git_;      // depths of the known git directories that the walk is in
  std::optional<size_t> store_;  // depth of the refs or logs that it is in
  Status status_;
};

}  // namespace

// As git decides it: where there is a commondir, objects and refs are those of the directory that
// it names. Where case does not count, the directory itself has to be asked.
bool LooksLikeGit(const TreeWalk::Directory& directory) {
  const bool head = std::any_of(
      directory.entries.begin(), directory.entries.end(), [](const sys::DirEntry& entry) {
        const char first = entry.name[0];
        return (first == 'H' || first == 'h' || static_cast<unsigned char>(first) >= 0x80) &&
               policy::FoldedName(entry.name) == "head";
      });
  const auto has = [&](const char* name) {
    struct stat info{};
    return HasEntry(directory.entries, name) ||
           ::fstatat(directory.fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
  };
  return head && has("HEAD") && (has("commondir") || (has("objects") && has("refs")));
}

Result<ProjectScan> ScanProject(const HostPath& root, const ProjectScan* before) {
  Scan scan(root, before);
  TRY(TreeWalk(
          root, "what runs code on the host",
          [&](const TreeWalk::Directory& directory) { return scan.Look(directory); },
          before == nullptr ? TreeWalk::Closed::kRefuse : TreeWalk::Closed::kOpen)
          .Run());
  return scan.Take();
}

}  // namespace coffer::isolation
