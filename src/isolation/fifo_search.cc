// SPDX-License-Identifier: Apache-2.0
#include "isolation/fifo_search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

// A directory on the way down. Those far above the deepest one are closed, and found again by "..".
struct Level {
  UniqueFd fd;
  dev_t dev = 0;
  ino_t ino = 0;
  std::string name;
  std::vector<std::string> directories;  // still to be entered
};

class FifoSearch {
 public:
  explicit FifoSearch(const HostPath& root) : root_(root) {}

  Result<std::vector<std::string>> Run() {
    TRY(Enter(root_.fd.get(), "."));
    while (!levels_.empty()) {
      Level& level = levels_.back();
      if (level.directories.empty()) {
        TRY(Leave());
        continue;
      }
      const std::string name = std::move(level.directories.back());
      level.directories.pop_back();
      TRY(Enter(level.fd.get(), name));
    }
    return std::move(fifos_);
  }

 private:
  Status Enter(int parent, const std::string& name) {
    // Never through a link: another user who can write there must not lead the search elsewhere.
    Result<UniqueFd> fd = sys::OpenNoLinks(parent, name, O_RDONLY | O_DIRECTORY);
    if (!fd.ok()) {
      return CheckOutOfReach(parent, name, fd.error().sys_errno);
    }
    Level level;
    level.fd = std::move(fd).value();
    level.name = name == "." ? "" : name;
    struct stat info{};
    if (::fstat(level.fd.get(), &info) != 0) {
      return Unchecked("a directory cannot be looked at");
    }
    level.dev = info.st_dev;
    level.ino = info.st_ino;
    TRY(Look(level));
    levels_.push_back(std::move(level));
    if (levels_.size() > kMaxOpen) {
      levels_[levels_.size() - 1 - kMaxOpen].fd.Reset();
    }
    return {};
  }

  Status Look(Level& level) {
    TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(level.fd.get()));
    scanned_ += entries.size();
    if (scanned_ > kMaxScanned) {
      return Refused("policy.path.size",
                     fmt::format("{} holds too many files to be checked", root_.path),
                     "name a smaller directory");
    }
    for (const sys::DirEntry& entry : entries) {
      unsigned char type = entry.type;
      if (struct stat info; type == DT_UNKNOWN && ::fstatat(level.fd.get(), entry.name.c_str(),
                                                            &info, AT_SYMLINK_NOFOLLOW) == 0) {
        type = IFTODT(info.st_mode);
      }
      if (type == DT_DIR) {
        level.directories.push_back(entry.name);
      } else if (type == DT_FIFO) {
        TRY(Found(level, entry.name));
      }
    }
    return {};
  }

  Status Found(const Level& here, const std::string& name) {
    std::string path;
    for (const Level& level : levels_) {
      path += level.name.empty() ? "" : level.name + "/";
    }
    path += here.name.empty() ? name : here.name + "/" + name;
    if (path.size() >= PATH_MAX - root_.path.size() - 1) {
      return Unchecked("a fifo lies too deep to be covered");
    }
    fifos_.push_back(std::move(path));
    if (fifos_.size() > kMaxFifos) {
      return Refused("policy.path.fifo",
                     fmt::format("{} holds more than {} fifos", root_.path, kMaxFifos));
    }
    return {};
  }

  // Goes up one level, whose descriptor may have been closed meanwhile.
  Status Leave() {
    const Level below = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty() || levels_.back().fd) {
      return {};
    }
    Level& above = levels_.back();
    TRY_ASSIGN(above.fd, sys::OpenAt(below.fd.get(), "..", O_RDONLY | O_DIRECTORY));
    struct stat info{};
    if (::fstat(above.fd.get(), &info) != 0 || info.st_dev != above.dev ||
        info.st_ino != above.ino) {
      return Unchecked("a directory was moved meanwhile");
    }
    return {};
  }

  // A directory that cannot be listed is left out only if it is gone, or if the boundary cannot enter it either.
  Status CheckOutOfReach(int parent, const std::string& name, int number) const {
    struct stat info{};
    if (number == ENOENT || number == ENOTDIR || number == ELOOP) {
      return {};
    }
    if (number == EACCES && ::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        info.st_uid != ::geteuid() && ::faccessat(parent, name.c_str(), X_OK, AT_EACCESS) != 0) {
      return {};
    }
    return Unchecked("a directory cannot be listed (" + sys::ErrnoText(number) + ")");
  }

  Error Unchecked(const std::string& why) const {
    return Refused("policy.path.fifo",
                   fmt::format("{} cannot be checked for fifos: {}", root_.path, why),
                   "make its directories readable, or name a directory further down");
  }

  const HostPath& root_;
  std::vector<Level> levels_;  // from the root down
  std::vector<std::string> fifos_;
  size_t scanned_ = 0;
};

}  // namespace

Result<std::vector<std::string>> FindFifos(const HostPath& root) { return FifoSearch(root).Run(); }

}  // namespace coffer::isolation
