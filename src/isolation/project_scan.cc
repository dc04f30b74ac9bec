// SPDX-License-Identifier: Apache-2.0
#include "isolation/project_scan.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/split.h"
#include "policy/protected_names.h"

namespace coffer::isolation {
namespace {

constexpr size_t kMostFound = 4096;

bool HasEntry(const std::vector<sys::DirEntry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const sys::DirEntry& entry) { return entry.name == name; });
}

// As git decides it: where there is a commondir, objects and refs are those of the directory that it names.
bool LooksLikeGit(const std::vector<sys::DirEntry>& entries) {
  return HasEntry(entries, "HEAD") && (HasEntry(entries, "commondir") ||
                                       (HasEntry(entries, "objects") && HasEntry(entries, "refs")));
}

bool IsBelowPackages(const std::string& path) {
  const std::vector<std::string_view> parts = SplitText(path, '/');
  return std::any_of(parts.begin(), parts.end(), policy::IsPackageDirectory);
}

class Scan {
 public:
  Scan(const HostPath& root, const ProjectScan* before) : root_(root), before_(before) {}

  Status Look(const TreeWalk::Directory& directory) {
    std::erase_if(directory.entries, [&](const sys::DirEntry& entry) {
      return status_.ok() && IsProtected(directory, entry);
    });
    TRY(std::move(status_));
    status_ = {};
    if (LooksLikeGit(directory.entries)) {
      TRY(AddGitDirectory(directory));
    }
    return {};
  }

  ProjectScan Take() { return std::move(scan_); }

 private:
  // Adds a protected name; true if it is not to be entered.
  bool IsProtected(const TreeWalk::Directory& directory, const sys::DirEntry& entry) {
    const policy::ProtectedName* const known =
        policy::FindProtectedName(entry.name, directory.name);
    if (known == nullptr) {
      return false;
    }
    const bool git = known->name == ".git";
    if (!git && IsBelowPackages(directory.walk.Path())) {
      return false;
    }
    status_ = Add(directory, entry.name, known->run_by, scan_.names);
    return !git;
  }

  Status AddGitDirectory(const TreeWalk::Directory& directory) {
    TRY(Add(directory, "", "git", scan_.git_directories));
    if (scan_.git_directories.empty()) {
      return {};  // gone meanwhile
    }
    for (const policy::GitPart& part : policy::GitParts()) {
      if (HasEntry(directory.entries, part.name)) {
        TRY(Add(directory, std::string(part.name), "git", scan_.git_parts));
      }
    }
    if (IsKnown(scan_.git_directories.back())) {
      std::erase_if(directory.entries, [](const sys::DirEntry& entry) {
        return entry.name == "objects" || entry.name == "refs" || entry.name == "logs" ||
               entry.name == "hooks";
      });
    }
    return {};
  }

  // A payload can make any directory look like git's: what it made is looked through like the rest.
  bool IsKnown(const FoundName& directory) const {
    return before_ == nullptr ||
           std::any_of(before_->git_directories.begin(), before_->git_directories.end(),
                       [&](const FoundName& known) { return known.Is(directory); });
  }

  // `name` in the directory, or the directory itself.
  Status Add(const TreeWalk::Directory& directory, const std::string& name, std::string_view run_by,
             std::vector<FoundName>& list) {
    struct stat info{};
    const int answer = name.empty()
                           ? ::fstat(directory.fd, &info)
                           : ::fstatat(directory.fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW);
    if (answer != 0) {
      return {};  // gone meanwhile
    }
    // After a call everything counts: a payload must not hide one name among thousands.
    if (before_ == nullptr && list.size() >= kMostFound) {
      return Refused("policy.project.size",
                     root_.path + " holds too many repositories and settings to be protected",
                     "name a smaller directory");
    }
    const std::string path = directory.walk.Path();
    list.push_back({path.empty() || name.empty() ? path + name : path + "/" + name, info.st_dev,
                    info.st_ino, info.st_mode, info.st_nlink, std::string(run_by)});
    return {};
  }

  const HostPath& root_;
  const ProjectScan* before_;  // null: this is the scan before the call
  ProjectScan scan_;
  Status status_;
};

}  // namespace

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
