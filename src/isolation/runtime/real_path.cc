// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/real_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::isolation {

namespace {

constexpr int kMaxLinks = 40;  // as the kernel

Error Loop(const std::string& path) { return sys::ErrnoError("runtime.path", path, -ELOOP); }

std::string Join(const std::string& directory, std::string_view name) {
  std::string joined;
  joined.reserve(directory.size() + 1 + name.size());
  joined = directory;
  if (joined != "/") {
    joined += '/';
  }
  joined += name;
  return joined;
}

}  // namespace

std::string_view DirName(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) {
    return ".";
  }
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string Normalize(std::string_view path) {
  std::string normal;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == "..") {
      normal.resize(normal.empty() ? 0 : normal.rfind('/'));
      continue;
    }
    normal += '/';
    normal += part;
  }
  return normal.empty() ? "/" : normal;
}

std::string RelativeTarget(std::string_view link, std::string_view target) {
  std::string_view from = DirName(link);
  size_t common = 0;  // length of the common prefix that ends before a slash of both
  for (size_t at = 0;; ++at) {
    const bool from_end = at == from.size() || from[at] == '/';
    const bool target_end = at == target.size() || target[at] == '/';
    if (from_end && target_end) {
      common = at;
    }
    if (at >= from.size() || at >= target.size() || from[at] != target[at]) {
      break;
    }
  }
  std::string relative;
  for (size_t at = common; at < from.size(); ++at) {
    if (from[at] == '/' && at + 1 < from.size()) {
      relative += "../";
    }
  }
  target.remove_prefix(std::min(target.size(), common + 1));
  relative += target;
  return relative.empty() ? "." : relative;
}

Result<RealPaths::Place> RealPaths::Find(const std::string& path) { return Walk(path, 0); }

Result<std::string> RealPaths::Directory(const std::string& path, int depth) {
  if (path.empty() || path == "/") {
    return std::string("/");
  }
  if (const auto known = directories_.find(path); known != directories_.end()) {
    return known->second;
  }
  TRY_ASSIGN(Place place, Walk(path, depth));
  if (place.is_link()) {
    followed_.emplace(place.Inside(), place.real);
  }
  directories_.emplace(path, place.real);
  directories_.emplace(place.real, place.real);
  return place.real;
}

void RealPaths::Follow(const std::string& path) {
  [[maybe_unused]] const Result<std::string> real = Directory(path, 0);
}

Result<RealPaths::Place> RealPaths::Walk(const std::string& path, int depth) {
  if (depth > kMaxLinks) {
    return Loop(path);
  }
  std::string_view rest = path;
  while (rest.size() > 1 && rest.back() == '/') {
    rest.remove_suffix(1);
  }
  const std::string_view name = BaseName(rest);
  if (name.empty()) {
    return Place{"/", "", "/"};
  }
  if (const auto known = directories_.find(rest);
      known != directories_.end() && known->second == rest) {
    return Place{std::string(DirName(rest)), std::string(name), std::string(rest)};
  }
  TRY_ASSIGN(std::string directory, Directory(std::string(DirName(rest)), depth + 1));
  if (name == ".") {
    return Walk(directory, depth + 1);
  }
  if (name == "..") {
    return Walk(std::string(DirName(directory)), depth + 1);
  }
  Place place{directory, std::string(name), Join(directory, name)};
  const long size = raw::Syscall(SYS_readlinkat, AT_FDCWD, raw::Arg(place.real.c_str()),
                                 raw::Arg(target_.data()), static_cast<long>(target_.size()));
  if (size == -EINVAL) {  // there, and not a link
    return place;
  }
  if (size < 0) {
    return sys::ErrnoError("runtime.path", path, size);
  }
  const std::string_view to(target_.data(), static_cast<size_t>(size));
  if (to.empty() || to.size() == target_.size()) {
    return Loop(path);
  }
  const std::string next_path = to.front() == '/' ? std::string(to) : Join(directory, to);
  TRY_ASSIGN(Place next, Walk(next_path, depth + 1));
  place.real = std::move(next.real);
  return place;
}

bool Stat(const std::string& path, struct stat& status) {
  return raw::Syscall(SYS_newfstatat, AT_FDCWD, raw::Arg(path.c_str()), raw::Arg(&status), 0) == 0;
}

// The usual case in one call: no link but perhaps the first component, as in /bin/sh on a host with merged /usr.
bool RealPaths::OpenStraight(const std::string& path, OpenedFile& file) {
  std::string straight = path;
  const size_t slash = path.find('/', 1);
  if (slash != std::string::npos && !path.starts_with("/usr/")) {
    const std::string top = path.substr(0, slash);
    const Result<std::string> real = Directory(top, 0);
    if (!real.ok()) {
      return false;
    }
    straight = *real + path.substr(slash);
  }
  if (Normalize(straight) != straight) {
    return false;
  }
  open_how how{};
  how.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long fd =
      raw::Syscall(SYS_openat2, AT_FDCWD, raw::Arg(straight.c_str()), raw::Arg(&how), sizeof(how));
  if (fd < 0) {
    return false;
  }
  file.fd.Reset(static_cast<int>(fd));
  for (std::string_view at = DirName(straight); at.size() > 1 && !directories_.contains(at);
       at = DirName(at)) {
    directories_.emplace(at, at);
  }
  file.place = {std::string(DirName(straight)), std::string(BaseName(straight)),
                std::move(straight)};
  return true;
}

Result<RealPaths::OpenedFile> RealPaths::Open(const std::string& path) {
  OpenedFile file;
  if (!OpenStraight(path, file)) {
    TRY_ASSIGN(file.place, Find(path));
    TRY_ASSIGN(file.fd, sys::Open(file.place.real, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  }
  const long answer = raw::Syscall(SYS_fstat, file.fd.get(), raw::Arg(&file.status));
  if (answer < 0) {
    return sys::ErrnoError("runtime.path", path, answer);
  }
  if (!S_ISREG(file.status.st_mode)) {
    return sys::ErrnoError("runtime.path", path, S_ISDIR(file.status.st_mode) ? -EISDIR : -EACCES);
  }
  return file;
}

}  // namespace coffer::isolation
