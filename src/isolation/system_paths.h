// SPDX-License-Identifier: Apache-2.0
//
// Which files are the system's own: root's, not writable by any other user, in the system's directories.
//
// The judgement covers the file and every directory above it, so a path that passes can be changed by root alone, and a
// later look at the same path finds the same thing. A path is judged by owner and mode; an access control list shows in
// the group's bits. A group of the system without a single member counts as nobody. Remembers directories for the length of one resolution. Not thread-safe.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <string_view>

namespace coffer::isolation {

class SystemPaths {
 public:
  // True if nobody but root can change what is in `directory`, or put something else at its path. Absolute, no links.
  bool OnlyRootChanges(const std::string& directory);

  // True if `path`, whose fstat is `info`, is the system's own: below /usr and its kin, root's all the way up, and
  // readable by every user, so that showing it gives nothing away.
  bool IsSystem(const std::string& path, const struct stat& info);

 private:
  std::map<std::string, bool, std::less<>> known_;
};

// "/usr/lib" for "/usr", not for "/us".
bool IsAtOrBelow(std::string_view path, std::string_view directory);

}  // namespace coffer::isolation
