// SPDX-License-Identifier: Apache-2.0
#include "isolation/protected_paths.h"

#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

namespace coffer::isolation {
namespace {

// Of a path with a slash in it.
std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// As the kernel knows it, as far as it exists.
std::string Real(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) != nullptr) {
    return resolved;
  }
  if (path == "/" || path == ".") {
    return path;  // without a current directory
  }
  const std::string above = Real(Parent(path));
  return (above == "/" ? "" : above) + path.substr(path.rfind('/'));
}

bool SameDirectory(const struct stat& info, dev_t dev, ino_t ino) {
  return info.st_dev == dev && info.st_ino == ino;
}

// True if `path` or a directory above it is the one with this number: also through a bind mount of it somewhere else.
bool LiesIn(std::string path, dev_t dev, ino_t ino) {
  for (;; path = Parent(path)) {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && SameDirectory(info, dev, ino)) {
      return true;
    }
    if (path == "/") {
      return false;
    }
  }
}

}  // namespace

Status CheckShowsNone(const HostPath& mount, std::span<const std::string> own) {
  for (const std::string& given : own) {
    const std::string place = Real(given.starts_with('/') ? given : "./" + given);
    struct stat info{};
    const bool there = ::stat(place.c_str(), &info) == 0;
    if (IsAtOrBelow(mount.path, place) || IsAtOrBelow(place, mount.path) ||
        LiesIn(place, mount.dev, mount.ino) ||
        (there && LiesIn(mount.path, info.st_dev, info.st_ino))) {
      return Refused("policy.path.state",
                     fmt::format("a mount of {} would show {}, which Cofferdam itself relies on",
                                 mount.path, given),
                     "mount something else: a directory that holds only what the call needs");
    }
  }
  return {};
}

Status CheckReceiptOutside(const HostPath& mount, const std::string& receipt) {
  if (receipt.empty() || receipt == "-") {
    return {};
  }
  const std::string directory = Real(Parent(receipt.starts_with('/') ? receipt : "./" + receipt));
  if (IsAtOrBelow(directory, mount.path) || LiesIn(directory, mount.dev, mount.ino)) {
    return Refused(
        "policy.receipt",
        fmt::format("the receipt {} lies in {}, where the call may write", receipt, mount.path),
        "name a file outside of the directories of --rw and --out");
  }
  return {};
}

}  // namespace coffer::isolation
