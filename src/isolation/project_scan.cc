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

bool Has(const std::vector<sys::DirEntry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const sys::DirEntry& entry) { return entry.name == name; });
}

bool LooksLikeGit(const std::vector<sys::DirEntry>& entries) {
  return Has(entries, "HEAD") && Has(entries, "objects") && Has(entries, "refs");
}

bool IsBelowPackages(const std::string& path) {
  const std::vector<std::string_view> parts = SplitText(path, '/');
  return std::any_of(parts.begin(), parts.end(), policy::IsPackageDirectory);
}

class Scan {
 public:
  Scan(const HostPath& root, size_t most) : root_(root), most_(most) {}

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
    const policy::ProtectedName* const known = policy::FindProtectedName(entry.name);
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
    for (const policy::GitPart& part : policy::GitParts()) {
      if (Has(directory.entries, part.name)) {
        TRY(Add(directory, std::string(part.name), "git", scan_.git_parts));
      }
    }
    std::erase_if(directory.entries, [](const sys::DirEntry& entry) {
      return entry.name == "objects" || entry.name == "refs" || entry.name == "logs" ||
             entry.name == "hooks";
    });
    return {};
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
    if (list.size() >= most_) {
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
  size_t most_;
  ProjectScan scan_;
  Status status_;
};

}  // namespace

Result<ProjectScan> ScanProject(const HostPath& root, TreeWalk::Closed closed) {
  // After a call everything counts: a payload must not hide one name among thousands.
  Scan scan(root, closed == TreeWalk::Closed::kRefuse ? kMostFound : TreeWalk::kMaxScanned);
  TRY(TreeWalk(
          root, "what runs code on the host",
          [&](const TreeWalk::Directory& directory) { return scan.Look(directory); }, closed)
          .Run());
  return scan.Take();
}

}  // namespace coffer::isolation
