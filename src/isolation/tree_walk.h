// SPDX-License-Identifier: Apache-2.0
//
// Walks a directory tree that a payload may have built: any depth, names of any length, directories that are closed to
// listing and open to those who know a name.
//
// The walk goes by descriptors, never by a path, follows no link, and holds at most kMaxOpen
// descriptors: directories far above the deepest one are closed and found again by "..". What it
// cannot look into, and the boundary could enter, is an error. It sees what is there at the time:
// a directory that is gone when it is to be entered is passed over (missed()). The caller decides
// what a change means.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "isolation/host_path.h"

namespace coffer::isolation {

class TreeWalk {
 public:
  static constexpr size_t kMaxScanned =
      2000000;  // entries; a larger tree is refused (Closed::kRefuse)
  static constexpr size_t kMaxOpen = 100;

  // What a directory is that the walk's own user closed to itself: kRefuse is an error, kOpen gives
  // it back to its owner (mode 0700). kOpen is for a tree in which nothing runs any more; there is
  // no bound of its size then, because a payload must not be able to end the walk.
  enum class Closed : uint8_t { kRefuse, kOpen };

  // One directory and what is in it. `entries` have their types; those that Visit takes out are not entered.
  struct Directory {
    const TreeWalk& walk;
    int fd;
    const std::string& name;
    std::vector<sys::DirEntry>& entries;
  };
  using Visit = std::function<Status(const Directory&)>;

  // `purpose` completes "... cannot be checked for": "fifos".
  TreeWalk(const HostPath& root, std::string_view purpose, Visit visit,
           Closed closed = Closed::kRefuse)
      : root_(root), purpose_(purpose), visit_(std::move(visit)), closed_(closed) {}

  // Called when everything below a directory has been visited.
  void OnLeave(std::function<void(int fd)> leave) { leave_ = std::move(leave); }

  Status Run();

  // A directory that was listed could not be entered or found again, because it was moved or removed.
  bool missed() const { return missed_; }

  // For Visit: the path of the directory that is being looked at, relative to the root; "" is the root itself. Put
  // together when asked for: a path for every level of a deep tree would take quadratic memory.
  std::string Path() const;
  // The same if it has at most `most` bytes. Otherwise false, and `path` is a directory above.
  bool ShortPath(size_t most, std::string& path) const;
  // For Visit: how many directories are above it; 0 is the root.
  size_t depth() const { return levels_.size(); }

 private:
  // A directory on the way down.
  struct WalkedDirectory {
    UniqueFd fd;
    dev_t dev = 0;
    ino_t ino = 0;
    bool searchable = true;                // false: its owner, who is our user, may only list it
    std::string name;                      // "" is the root
    std::vector<std::string> directories;  // still to be entered
  };

  Status Enter(int parent, const std::string& name);
  Status Look(WalkedDirectory& level);
  Status OpenToSearch(const WalkedDirectory& level) const;
  Status Leave();
  Result<UniqueFd> OpenDirectory(int parent, const std::string& name) const;
  Status CheckOutOfReach(int parent, const std::string& name, int number);
  Error Unchecked(const std::string& why) const;

  const HostPath& root_;
  std::string_view purpose_;
  Visit visit_;
  std::function<void(int fd)> leave_;
  Closed closed_;
  std::vector<WalkedDirectory> levels_;  // from the root down
  const WalkedDirectory* looked_at_ = nullptr;
  size_t scanned_ = 0;
  bool missed_ = false;
};

}  // namespace coffer::isolation
