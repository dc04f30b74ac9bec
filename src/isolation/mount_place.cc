// SPDX-License-Identifier: Apache-2.0
#include "isolation/mount_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/path_words.h"
#include "base/sys.h"
#include "isolation/setup_error.h"

namespace coffer::isolation {
namespace {

enum class Shown : uint8_t { kYes, kBehindAMountPoint };

struct OnHost {
  uint64_t mount = 0;
  bool mount_point = false;
};

OnHost WhereIs(int fd) {
  struct statx info{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &info) != 0) {
    return {};
  }
  return {info.stx_mnt_id, (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0};
}

// The number of the inode that lies beneath a mount point: a directory lists that one (getdents(2)). 0 if it has no such name.
ino_t Beneath(int directory, const std::string& name) {
  UniqueFd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> list(own ? ::fdopendir(own.get()) : nullptr,
                                                 &::closedir);
  if (list == nullptr) {
    return 0;
  }
  (void)own.Release();
  while (const dirent* const entry = ::readdir(list.get())) {
    if (entry->d_name == name) {
      return entry->d_ino;
    }
  }
  return 0;
}

Result<Shown> FindPlace(const OpenedMount& outer, OpenedMount& inner) {
  const OnHost around = WhereIs(outer.path.fd.get());
  const OnHost here = WhereIs(inner.path.fd.get());
  if (here.mount == around.mount) {
    inner.place_dev = inner.path.dev;
    inner.place_ino = inner.path.ino;
    return Shown::kYes;
  }
  if (!here.mount_point) {
    return Shown::kBehindAMountPoint;
  }
  const std::string& path = inner.path.path;
  const size_t slash = path.rfind('/');
  TRY_ASSIGN(
      const UniqueFd parent,
      sys::OpenNoLinks(AT_FDCWD, slash == 0 ? "/" : path.substr(0, slash), O_PATH | O_DIRECTORY));
  if (WhereIs(parent.get()).mount != around.mount) {
    return Shown::kBehindAMountPoint;
  }
  struct stat info{};
  inner.place_ino = Beneath(parent.get(), path.substr(slash + 1));
  if (inner.place_ino == 0 || ::fstat(parent.get(), &info) != 0) {
    return PlaceMoved(path);
  }
  inner.place_dev = info.st_dev;
  return Shown::kYes;
}

}  // namespace

Status FindPlaces(std::vector<OpenedMount>& mounts) {
  std::map<std::string_view, const OpenedMount*> shown;
  std::vector<bool> hidden(mounts.size());
  for (size_t i = 0; i < mounts.size(); ++i) {
    OpenedMount& mount = mounts[i];
    const OpenedMount* around = nullptr;
    for (std::string_view at = mount.at; around == nullptr && at.size() > 1;
         at = at.substr(0, at.rfind('/'))) {
      const auto found = shown.find(at);
      around = found == shown.end() ? nullptr : found->second;
    }
    if (around != nullptr) {
      TRY_ASSIGN(const Shown is_shown, FindPlace(*around, mount));
      hidden[i] = is_shown != Shown::kYes;
      if (hidden[i] && !mount.within) {
        return PlaceMoved(mount.path.path);  // the caller named it, and the way to it was one mount
      }
    }
    if (mount.path.directory && !hidden[i]) {
      shown[mount.at] = &mount;
    }
  }
  std::vector<OpenedMount> kept;
  kept.reserve(mounts.size());
  for (size_t i = 0; i < mounts.size(); ++i) {
    if (!hidden[i]) {
      kept.push_back(std::move(mounts[i]));
    }
  }
  mounts = std::move(kept);
  return {};
}

}  // namespace coffer::isolation
