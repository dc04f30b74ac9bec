// SPDX-License-Identifier: Apache-2.0
//
// Moves what a call planted in a project to where no program looks for it: a new directory of the
// project's own, so that the move is one rename on one file system, whatever was planted.
//
// A person is to look at it there, and a shell's prompt asks git in every directory that it enters. Later calls can make
// links that lead there, and move its files. So nothing in there is live: protected names below a moved directory, and
// HEAD of each repository, become entries of that directory too, under names that no program knows.
//
// The payload has ended, but it chose the names and what is in them. So everything goes by descriptors without links,
// and the directory is made, never found.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "isolation/host_path.h"
#include "isolation/tree_walk.h"

namespace coffer::call {

// A directory that its owner may list and change for a moment: a payload closes what it leaves. A file in a directory
// that cannot be written stays where it is.
class OpenedToOwner {
 public:
  explicit OpenedToOwner(int fd);  // O_PATH will do
  ~OpenedToOwner();
  OpenedToOwner(const OpenedToOwner&) = delete;
  OpenedToOwner& operator=(const OpenedToOwner&) = delete;

 private:
  std::string name_;
  std::optional<mode_t> mode_;  // that it had
};

class SetAside {
 public:
  explicit SetAside(const isolation::HostPath& root) : root_(root) {}

  // Moves `path`, relative to the root; the new path, relative to the root too. Makes the directory for the first one.
  Result<std::string> Move(const std::string& path);

 private:
  Status MakeDirectory();
  // Disarms the file or directory `moved`, which came from `path`.
  Status Disarm(const std::string& moved, const std::string& path);
  // Moves `name` of that directory, which lies below the directory moved from `path`.
  Status Take(const isolation::TreeWalk::Directory& from, const std::string& name,
              const std::string& path, std::string& flat);
  Result<UniqueFd> OpenParent(const std::string& path) const;

  const isolation::HostPath& root_;
  std::string name_;  // of the directory; empty: not made yet
  UniqueFd directory_;
  size_t count_ = 0;
};

}  // namespace coffer::call
