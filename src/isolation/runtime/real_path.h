// SPDX-License-Identifier: Apache-2.0
//
// Turns the names of host files into real paths, and remembers which links were followed on the way.
//
// A program is asked for as /bin/sh and lies at /usr/bin/dash: inside, both names must work, so each link that was
// followed is part of the answer. Directories are walked once and remembered, so a further file in a known directory
// costs one system call. Not thread-safe; made for one resolution, with the host taken as it is.
#pragma once

#include <sys/stat.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "isolation/system_paths.h"

namespace coffer::isolation {

// A link of a directory, and where it leads after every hop: {"/bin", "/usr/bin"}. Both without links in the middle.
using FollowedLink = std::pair<std::string, std::string>;

class RealPaths {
 public:
  struct Place {
    std::string directory;  // real
    std::string name;       // last component, perhaps a link itself
    std::string real;  // after following that too; real == directory + "/" + name if it is no link
    // The real directory of the first link on the way that another user than root could have made; empty if there is
    // none. Where such a link leads is what a file says, not what the caller said.
    std::string link_directory{};
    bool via_link() const { return !link_directory.empty(); }
    std::string Inside() const { return directory == "/" ? "/" + name : directory + "/" + name; }
    bool is_link() const { return real != Inside(); }
  };

  // `path` is absolute; "." and ".." and "//" are fine. The errno is in the error: ENOENT, ENOTDIR, EACCES, ELOOP.
  Result<Place> Find(const std::string& path);

  struct OpenedFile {
    Place place;
    UniqueFd fd;
    struct stat status{};
  };
  // Finds a regular file and opens it for reading. Looks at its type first: a fifo or device is never opened.
  // EISDIR for a directory, EACCES for anything else that is no file.
  Result<OpenedFile> Open(const std::string& path);

  // Follows `path` as the directory of a file would be; the links show up in followed(). Nothing if it is not there.
  void Follow(const std::string& path);

  // True once more was looked up than any program needs: then nothing is found any more, so that a
  // hostile file cannot keep a resolution going for ever. The resolver refuses the answer.
  bool exhausted() const { return lookups_ > kMaxLookups; }
  static constexpr size_t kMaxLookups = 100'000;

  // Links of directories that were followed so far, in the order of their names.
  const std::map<std::string, std::string>& followed() const { return followed_; }

 private:
  struct RealDirectory {
    std::string real;
    std::string link_directory;  // as in Place
  };
  Result<RealDirectory> Directory(const std::string& path, int depth);
  Result<Place> Walk(const std::string& path, int depth);

  SystemPaths system_;
  size_t lookups_ = 0;
  std::map<std::string, RealDirectory, std::less<>> directories_;  // by the path as named
  std::map<std::string, std::string> followed_;
  std::array<char, 4096> target_;  // of the link that is being read
};

// newfstatat of `path`, following links; nothing if there is nothing.
bool Stat(const std::string& path, struct stat& status);

// "/a/b/../c//d/." -> "/a/c/d". Purely by text: only right where no component before a ".." is a link.
std::string Normalize(std::string_view path);

std::string_view DirName(std::string_view path);
std::string_view BaseName(std::string_view path);

// `target` as seen from the directory of `link`: ("/usr/bin/awk", "/usr/bin/mawk") -> "mawk".
std::string RelativeTarget(std::string_view link, std::string_view target);

}  // namespace coffer::isolation
