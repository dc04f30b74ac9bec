// SPDX-License-Identifier: Apache-2.0
#include "isolation/protected_paths.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <vector>

#include "base/path_words.h"
#include "base/sys.h"

namespace coffer::isolation {
namespace {

// Of a path with a slash in it.
std::string DirectoryAbove(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// A path as the kernel walks it: every link on the way, by its own real path, and where it ends.
// What does not exist, be it behind a link, is kept by name.
struct Way {
  std::vector<std::string> links;
  std::string end;
};

Way Follow(const std::string& path) {
  constexpr size_t kMostLinksInPath = 40;  // the kernel's own bound
  Way way;
  std::deque<std::string> left;
  // Puts the parts of `text` before what is left.
  const auto add = [&](std::string_view text) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('/', at), text.size());
      parts.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
    left.insert(left.begin(), parts.begin(), parts.end());
  };
  add(path);
  if (!path.starts_with('/')) {
    const Result<std::string> cwd = sys::ReadLinkAt(AT_FDCWD, "/proc/self/cwd");
    add(cwd.ok() ? *cwd : "");
  }
  while (!left.empty()) {
    const std::string part = std::move(left.front());
    left.pop_front();
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == "..") {
      way.end.resize(std::min(way.end.rfind('/'), way.end.size()));
      continue;
    }
    const std::string next = way.end + "/" + part;
    const Result<std::string> target = sys::ReadLinkAt(AT_FDCWD, next);
    if (!target.ok() || way.links.size() == kMostLinksInPath) {
      way.end = next;
      continue;
    }
    way.links.push_back(next);
    add(*target);
    if (target->starts_with('/')) {
      way.end.clear();
    }
  }
  way.end = way.end.empty() ? "/" : way.end;
  return way;
}

bool HasNumber(const struct stat& info, dev_t dev, ino_t ino) {
  return info.st_dev == dev && info.st_ino == ino;
}

// True if `path` or a directory above it is the one with this number: also through a bind mount of it somewhere else.
bool LiesIn(std::string path, dev_t dev, ino_t ino) {
  for (;; path = DirectoryAbove(path)) {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && HasNumber(info, dev, ino)) {
      return true;
    }
    if (path == "/") {
      return false;
    }
  }
}

// True if `path`, a real path, lies in the mount or is the mount.
bool MountShows(const HostPath& mount, const std::string& path) {
  return IsAtOrBelow(path, mount.path) || LiesIn(path, mount.dev, mount.ino);
}

const std::string* FindShown(const HostPath& mount, const std::vector<std::string>& links) {
  const auto found = std::find_if(links.begin(), links.end(), [&](const std::string& link) {
    return MountShows(mount, DirectoryAbove(link));
  });
  return found == links.end() ? nullptr : &*found;
}

}  // namespace

Status CheckShowsNone(const HostPath& mount, policy::Access access,
                      std::span<const std::string> protected_paths) {
  for (const std::string& given : protected_paths) {
    const Way way = Follow(given);
    struct stat info{};
    const bool there = ::stat(way.end.c_str(), &info) == 0;
    if (IsAtOrBelow(mount.path, way.end) || MountShows(mount, way.end) ||
        (there && LiesIn(mount.path, info.st_dev, info.st_ino))) {
      return Refused("policy.path.state",
                     fmt::format("a mount of {} would show {}, which Cofferdam itself relies on",
                                 PathInWords(mount.path), PathInWords(given)),
                     "mount something else: a directory that holds only what the call needs");
    }
    if (const std::string* const link = FindShown(mount, way.links);
        link != nullptr && access == policy::Access::kWrite) {
      return Refused("policy.path.state",
                     fmt::format("{}, which Cofferdam itself relies on, lies behind the link {}, "
                                 "which the call could replace",
                                 PathInWords(given), PathInWords(*link)),
                     "mount something else, or let the link lie outside of what calls may write");
    }
  }
  return {};
}

bool Reaches(const HostPath& mount, const HostPath& held) {
  return (held.dev == mount.dev && held.ino == mount.ino) ||
         MountShows(mount, DirectoryAbove(held.path)) ||
         (held.directory && LiesIn(mount.path, held.dev, held.ino));
}

Status CheckReceiptOutside(const HostPath& mount, const std::string& receipt) {
  if (receipt.empty() || receipt == "-") {
    return {};
  }
  const Way way = Follow(DirectoryAbove(receipt.starts_with('/') ? receipt : "./" + receipt));
  if (MountShows(mount, way.end) || FindShown(mount, way.links) != nullptr) {
    return Refused("policy.receipt",
                   fmt::format("the receipt {} lies in {}, where the call may write",
                               PathInWords(receipt), PathInWords(mount.path)),
                   "name a file outside of the directories of --rw and --out");
  }
  return {};
}

}  // namespace coffer::isolation
