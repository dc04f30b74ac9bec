// SPDX-License-Identifier: Apache-2.0
//
// Moves what a call planted in a project to where no program looks for it: a new directory of the
// project's own, so that the move is one rename on one file system, whatever was planted.
//
// The payload has ended, but it chose the names and what is in them. So everything goes by descriptors without links,
// and the directory is made, never found.
#pragma once

#include <string>

#include "base/result.h"
#include "isolation/host_path.h"

namespace coffer::call {

class SetAside {
 public:
  explicit SetAside(const isolation::HostPath& root) : root_(root) {}

  // Moves `path`, relative to the root; the new path, relative to the root too. Makes the directory for the first one.
  Result<std::string> Move(const std::string& path);

 private:
  Status MakeDirectory();
  Result<UniqueFd> OpenParent(const std::string& path) const;

  const isolation::HostPath& root_;
  std::string name_;  // of the directory; empty: not made yet
  UniqueFd directory_;
  size_t count_ = 0;
};

}  // namespace coffer::call
