// SPDX-License-Identifier: Apache-2.0
#include "isolation/tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path_words.h"

namespace coffer::isolation {

Status TreeWalk::Run() {
  TRY(Enter(root_.fd.get(), "."));
  while (!levels_.empty()) {
    WalkedDirectory& level = levels_.back();
    if (level.directories.empty()) {
      TRY(Leave());
      continue;
    }
    const std::string name = std::move(level.directories.back());
    level.directories.pop_back();
    TRY(Enter(level.fd.get(), name));
  }
  return {};
}

Result<UniqueFd> TreeWalk::OpenDirectory(int parent, const std::string& name) const {
  // Never through a link: another user who can write there must not lead the walk elsewhere.
  Result<UniqueFd> fd = sys::OpenNoLinks(parent, name, O_RDONLY | O_DIRECTORY);
  if (fd.ok() || fd.error().sys_errno != EACCES || closed_ == Closed::kRefuse) {
    return fd;
  }
  const Result<UniqueFd> closed = sys::OpenNoLinks(parent, name, O_PATH | O_DIRECTORY);
  struct stat info{};
  if (closed.ok() && ::fstat(closed->get(), &info) == 0 && info.st_uid == ::geteuid() &&
      ::chmod(fmt::format("/proc/self/fd/{}", closed->get()).c_str(), 0700) == 0) {
    return sys::OpenNoLinks(parent, name, O_RDONLY | O_DIRECTORY);
  }
  return fd;
}

// A directory that its owner may list and not search (mode 0444) has names about which nothing can be asked. If it is
// another user's, the boundary cannot change that either.
Status TreeWalk::OpenToSearch(const WalkedDirectory& level) const {
  if (level.searchable || (closed_ == Closed::kOpen && ::fchmod(level.fd.get(), 0700) == 0)) {
    return {};
  }
  return Unchecked("a directory can be listed and not entered");
}

Status TreeWalk::Enter(int parent, const std::string& name) {
  Result<UniqueFd> fd = OpenDirectory(parent, name);
  if (!fd.ok()) {
    return CheckOutOfReach(parent, name, fd.error().sys_errno);
  }
  WalkedDirectory level;
  level.fd = std::move(fd).value();
  level.name = name == "." ? "" : name;
  struct stat info{};
  if (::fstat(level.fd.get(), &info) != 0) {
    return Unchecked("a directory cannot be looked at");
  }
  level.dev = info.st_dev;
  level.ino = info.st_ino;
  const uid_t own = ::geteuid();
  level.searchable = own == 0 || info.st_uid != own || (info.st_mode & S_IXUSR) != 0;
  TRY(Look(level));
  levels_.push_back(std::move(level));
  if (levels_.size() > kMaxOpen) {
    levels_[levels_.size() - 1 - kMaxOpen].fd.Reset();
  }
  return {};
}

Status TreeWalk::Look(WalkedDirectory& level) {
  Result<std::vector<sys::DirEntry>> listed = sys::ListDir(level.fd.get());
  if (!listed.ok() && listed.error().sys_errno == ENOENT) {
    missed_ = true;  // removed after it was opened: nothing is in it
    return {};
  }
  TRY_ASSIGN(std::vector<sys::DirEntry> entries, std::move(listed));
  if (!entries.empty()) {
    TRY(OpenToSearch(level));
  }
  scanned_ += entries.size();
  if (scanned_ > kMaxScanned && closed_ == Closed::kRefuse) {
    return Refused("policy.path.size",
                   fmt::format("{} holds too many files to be checked", PathInWords(root_.path)),
                   "name a smaller directory");
  }
  for (sys::DirEntry& entry : entries) {
    if (entry.type != DT_UNKNOWN) {
      continue;
    }
    if (struct stat info{};
        ::fstatat(level.fd.get(), entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
      entry.type = IFTODT(info.st_mode);
    } else {
      missed_ = true;
    }
  }
  looked_at_ = &level;
  TRY(visit_({*this, level.fd.get(), level.name, entries}));
  for (sys::DirEntry& entry : entries) {
    if (entry.type == DT_DIR) {
      level.directories.push_back(std::move(entry.name));
    }
  }
  return {};
}

std::string TreeWalk::Path() const {
  std::string path;
  for (const WalkedDirectory& level : levels_) {
    path += level.name.empty() ? "" : level.name + "/";
  }
  return path + looked_at_->name;
}

bool TreeWalk::ShortPath(size_t most, std::string& path) const {
  path.clear();
  const auto add = [&](const std::string& name) {
    if (path.size() + 1 + name.size() > most) {
      return false;
    }
    path += path.empty() || name.empty() ? "" : "/";
    path += name;
    return true;
  };
  for (const WalkedDirectory& level : levels_) {
    if (!add(level.name)) {
      return false;
    }
  }
  return add(looked_at_->name);
}

// Goes up one level, whose descriptor may have been closed meanwhile.
Status TreeWalk::Leave() {
  const WalkedDirectory below = std::move(levels_.back());
  levels_.pop_back();
  if (leave_) {
    leave_(below.fd.get());
  }
  if (levels_.empty() || levels_.back().fd) {
    return {};
  }
  WalkedDirectory& above = levels_.back();
  TRY_ASSIGN(above.fd, sys::OpenAt(below.fd.get(), "..", O_RDONLY | O_DIRECTORY));
  struct stat info{};
  if (::fstat(above.fd.get(), &info) != 0 || info.st_dev != above.dev || info.st_ino != above.ino) {
    missed_ = true;
    return Unchecked("a directory was moved meanwhile");
  }
  return {};
}

// A directory that cannot be listed is left out only if it is gone, or if the boundary cannot enter it either.
Status TreeWalk::CheckOutOfReach(int parent, const std::string& name, int number) {
  struct stat info{};
  if (number == ENOENT || number == ENOTDIR || number == ELOOP) {
    missed_ = true;
    return {};
  }
  if (number == EACCES && ::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      info.st_uid != ::geteuid() && ::faccessat(parent, name.c_str(), X_OK, AT_EACCESS) != 0) {
    return {};
  }
  return Unchecked("a directory cannot be listed (" + sys::ErrnoText(number) + ")");
}

Error TreeWalk::Unchecked(const std::string& why) const {
  return Refused(
      "policy.path.unchecked",
      fmt::format("{} cannot be checked for {}: {}", PathInWords(root_.path), purpose_, why),
      "make its directories readable, or name a directory further down");
}

}  // namespace coffer::isolation
