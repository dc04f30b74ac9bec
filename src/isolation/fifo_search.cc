// SPDX-License-Identifier: Apache-2.0
#include "isolation/fifo_search.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/path_words.h"
#include "isolation/tree_walk.h"

namespace coffer::isolation {
namespace {

constexpr uint32_t kMoves = IN_MOVED_FROM | IN_MOVED_TO;
constexpr int kPlainSearches =
    2;  // by times alone: to end an instance of inotify takes milliseconds
constexpr timespec kPartOfATick = {0, 1'000'000};
constexpr int kPartsOfATick = 10;

bool Before(const timespec& a, const timespec& b) {
  return std::pair(a.tv_sec, a.tv_nsec) < std::pair(b.tv_sec, b.tv_nsec);
}

// The clock by which the kernel notes changes of inodes.
timespec ClockOfInodes() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}

// The latest time of which a file system can have noted `changed`: some keep whole seconds, or two.
timespec LatestOf(timespec changed) {
  if (changed.tv_nsec == 0) {
    changed.tv_sec += 2;
  } else if (changed.tv_nsec % 10'000'000 == 0) {
    changed.tv_nsec += 9'999'999;
  }
  return changed;
}

uint64_t MountOf(int dir, const char* name) {
  struct statx info{};
  const int flags = AT_SYMLINK_NOFOLLOW | (*name == '\0' ? AT_EMPTY_PATH : 0);
  return ::statx(dir, name, flags, STATX_MNT_ID, &info) == 0 ? info.stx_mnt_id : 0;
}

// One search after the other, until one was not disturbed.
class FifoSearch {
 public:
  explicit FifoSearch(const HostPath& root) : root_(root), mount_(MountOf(root.fd.get(), "")) {}

  Result<std::vector<CoveredFile>> Run() {
    for (; searches_ < kMaxFifoSearches; ++searches_) {
      TRY_ASSIGN(const bool complete, Search());
      if (complete) {
        return std::move(fifos_);
      }
      // What was made just before the search looks like a change during it, until the clock has gone on.
      for (int i = 0; i < kPartsOfATick && !Before(newest_, ClockOfInodes()); ++i) {
        ::nanosleep(&kPartOfATick, nullptr);
      }
    }
    return Refused(
        "policy.path.unchecked",
        fmt::format("{} cannot be checked for fifos: directories in it were moved during "
                    "each of {} searches",
                    PathInWords(root_.path), kMaxFifoSearches),
        "wait until the program that moves them is done, or name a directory further down");
  }

 private:
  using Inode = std::pair<dev_t, ino_t>;

  Result<bool> Search() {
    fifos_.clear();
    changed_ = false;
    newest_ = {};
    const std::set<Inode> watched = watched_;
    (void)SawMoves();  // of before
    start_ = ClockOfInodes();
    TreeWalk walk(root_, "fifos",
                  [&](const TreeWalk::Directory& directory) { return Look(directory); });
    walk.OnLeave([&](int directory) { CheckUnchanged(directory, watched); });
    const Status walked = walk.Run();
    const bool disturbed = walk.missed() || changed_ || SawMoves();
    if (!disturbed || (!walked.ok() && !walk.missed())) {
      TRY(walked);
    }
    return !disturbed;
  }

  Status Look(const TreeWalk::Directory& directory) {
    for (const sys::DirEntry& entry : directory.entries) {
      if (entry.type != DT_FIFO) {
        continue;
      }
      CoveredFile fifo;
      const std::string path = directory.walk.Path();
      fifo.path = path.empty() ? entry.name : path + "/" + entry.name;
      struct stat info{};
      if (::fstatat(directory.fd, entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISFIFO(info.st_mode)) {
        changed_ = true;
        continue;
      }
      if (MountOf(directory.fd, entry.name.c_str()) == mount_) {
        fifo.dev = info.st_dev;
        fifo.ino = info.st_ino;
      }
      fifos_.push_back(std::move(fifo));
      if (fifos_.back().path.size() >= PATH_MAX - root_.path.size() - 1) {
        return Refused("policy.path.fifo",
                       fmt::format("{} holds a fifo that lies too deep to be covered",
                                   PathInWords(root_.path)),
                       "remove the fifo, or name a directory further down");
      }
      if (fifos_.size() > kMaxFifos) {
        return Refused("policy.path.fifo", fmt::format("{} holds more than {} fifos",
                                                       PathInWords(root_.path), kMaxFifos));
      }
    }
    return {};
  }

  // Everything below `directory` has been looked at by the names that were in it at the start, if none has changed
  // since. A change of files does not count, but only inotify tells it from a moved directory.
  void CheckUnchanged(int directory, const std::set<Inode>& watched) {
    struct stat info{};
    if (::fstat(directory, &info) == 0 && Before(LatestOf(info.st_ctim), start_)) {
      return;
    }
    const Inode inode{info.st_dev, info.st_ino};
    if (watched.contains(inode)) {
      return;  // SawMoves knows
    }
    changed_ = true;
    newest_ = std::max(newest_, info.st_ctim, Before);
    if (searches_ + 1 >= kPlainSearches && !watch_) {
      watch_.Reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    }
    const std::string name = fmt::format("/proc/self/fd/{}", directory);
    if (watch_ && ::inotify_add_watch(watch_.get(), name.c_str(), kMoves | IN_ONLYDIR) >= 0) {
      watched_.insert(inode);
    }
  }

  // Also true if the kernel has lost count.
  bool SawMoves() {
    bool moved = false;
    alignas(inotify_event) std::array<char, 8192> buffer{};
    for (ssize_t got = 0;
         watch_ && (got = ::read(watch_.get(), buffer.data(), buffer.size())) > 0;) {
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        moved = moved || (event->mask & IN_Q_OVERFLOW) != 0 ||
                ((event->mask & kMoves) != 0 && (event->mask & IN_ISDIR) != 0);
        at += static_cast<ssize_t>(sizeof(*event)) + event->len;
      }
    }
    return moved;
  }

  const HostPath& root_;
  uint64_t mount_;
  int searches_ = 0;
  timespec start_{};
  timespec newest_{};  // of what changed
  bool changed_ = false;
  std::vector<CoveredFile> fifos_;
  UniqueFd watch_;
  std::set<Inode> watched_;  // by inotify, for all of the search that comes next
};

}  // namespace

Result<std::vector<CoveredFile>> FindFifos(const HostPath& root) { return FifoSearch(root).Run(); }

}  // namespace coffer::isolation
