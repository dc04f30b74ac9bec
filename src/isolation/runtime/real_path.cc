// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/real_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/regular_file.h"
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

Result<RealPaths::RealDirectory> RealPaths::Directory(const std::string& path, int depth) {
  if (path.empty() || path == "/") {
    return RealDirectory{"/", {}};
  }
  if (const auto known = directories_.find(path); known != directories_.end()) {
    return known->second;
  }
  TRY_ASSIGN(Place place, Walk(path, depth));
  if (place.is_link()) {
    followed_.emplace(place.Inside(), place.real);
  }
  RealDirectory found{place.real, place.link_directory};
  directories_.emplace(path, found);
  directories_.emplace(place.real, RealDirectory{place.real, {}});
  return found;
}

void RealPaths::Follow(const std::string& path) {
  [[maybe_unused]] const Result<RealDirectory> real = Directory(path, 0);
}

Result<RealPaths::Place> RealPaths::Walk(const std::string& path, int depth) {
  if (depth > kMaxLinks || exhausted()) {
    return Loop(path);
  }
  ++lookups_;
  std::string_view rest = path;
  while (rest.size() > 1 && rest.back() == '/') {
    rest.remove_suffix(1);
  }
  const std::string_view name = BaseName(rest);
  if (name.empty()) {
    return Place{"/", "", "/"};
  }
  if (const auto known = directories_.find(rest);
      known != directories_.end() && known->second.real == rest) {
    return Place{std::string(DirName(rest)), std::string(name), std::string(rest)};
  }
  TRY_ASSIGN(const RealDirectory above, Directory(std::string(DirName(rest)), depth + 1));
  const std::string& directory = above.real;
  if (name == "." || name == "..") {
    TRY_ASSIGN(Place place,
               Walk(name == "." ? directory : std::string(DirName(directory)), depth + 1));
    place.link_directory = above.link_directory;
    return place;
  }
  Place place{directory, std::string(name), Join(directory, name), above.link_directory};
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
  if (place.link_directory.empty()) {
    place.link_directory =
        system_.IsSystemLink(directory, place.name) ? std::move(next.link_directory) : directory;
  }
  return place;
}

bool Stat(const std::string& path, struct stat& status) {
  return raw::Syscall(SYS_newfstatat, AT_FDCWD, raw::Arg(path.c_str()), raw::Arg(&status), 0) == 0;
}

Result<RealPaths::OpenedFile> RealPaths::Open(const std::string& path) {
  OpenedFile file;
  TRY_ASSIGN(file.place, Find(path));
  TRY_ASSIGN(const UniqueFd examined, sys::OpenNoLinks(AT_FDCWD, file.place.real, O_PATH));
  const long answer = raw::Syscall(SYS_fstat, examined.get(), raw::Arg(&file.status));
  if (answer < 0) {
    return sys::ErrnoError("runtime.path", path, answer);
  }
  if (S_ISDIR(file.status.st_mode)) {
    return sys::ErrnoError("runtime.path", path, -EISDIR);
  }
  Result<UniqueFd> readable = sys::ReopenRegular(examined.get(), path, O_RDONLY);
  if (!readable.ok() && readable.error().kind == ErrorKind::kRefused) {
    return sys::ErrnoError("runtime.path", path,
                           -EACCES);  // a fifo, a socket, a file of the kernel
  }
  TRY_ASSIGN(file.fd, std::move(readable));
  return file;
}

}  // namespace coffer::isolation
