// SPDX-License-Identifier: Apache-2.0
//
// Which files are the system's own: root's, not writable by any other user, in the directories of installed programs.
//
// The judgement covers the file and every directory above it, so a path that passes can be changed by root alone, and a
// later look at the same path finds the same thing. Every user can reach and read it, so showing it gives nothing away.
// A path is judged by owner, mode and access control list. A system group without members adds
// no writer. Remembers directories for the length of one resolution. Not thread-safe.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <string_view>

namespace coffer::isolation {

class SystemPaths {
 public:
  // True if only root could have made the link `name` in `directory`: a directory of installed programs, or the root
  // directory, in which only root makes names; and a link that is root's. Root's own projects are no such place: what a
  // payload writes into a mount of theirs is root's, too.
  bool IsSystemLink(const std::string& directory, const std::string& name);

  // True if only root can change `path`, whose lstat is `info`, and every user can read it. The
  // directories above it are the caller's to judge.
  bool IsPublic(const std::string& path, const struct stat& info);
  // True if only root can make names in `directory`, and every user can enter it.
  bool OnlyRootChanges(const std::string& directory);

  // True if `path`, whose fstat is `info`, is the system's own.
  bool IsSystem(const std::string& path, const struct stat& info);

 private:
  std::map<std::string, bool, std::less<>> known_;
};

// "/usr/lib" for "/usr", not for "/us".
bool IsAtOrBelow(std::string_view path, std::string_view directory);

// True if that uid is root's as this process sees it: 0, or the overflow uid where the host's root is not mapped.
bool IsRootOwner(uid_t owner);

// The directories in which writing changes the host: its programs, libraries, settings and what
// packages keep. Below /var, where users have data too, those that belong to root or an account of
// the system. /usr/src, /usr/local/src and /var/tmp hold directories of users. True if `path`, with
// that owner, is one of them or lies in one.
bool IsSystemDirectory(std::string_view path, uid_t owner);
// The same for an open directory, by the identity of what is above it: a bind mount may give it
// another name. True if it cannot be told.
bool IsSystemDirectory(int directory, uid_t owner);

}  // namespace coffer::isolation
