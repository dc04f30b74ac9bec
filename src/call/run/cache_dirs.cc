// SPDX-License-Identifier: Apache-2.0
#include "call/run/cache_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/quantity.h"
#include "base/remove_tree.h"
#include "base/sys.h"
#include "base/text.h"
#include "isolation/fifo_search.h"
#include "isolation/runtime/runtime.h"
#include "limits/tree_scan.h"
#include "policy/manifest/mistake.h"

namespace coffer::call {
namespace {

struct KnownCache {
  std::string_view name;
  std::string_view variable;
};
constexpr std::array kKnown = {KnownCache{"pip", "PIP_CACHE_DIR"},
                               KnownCache{"npm", "npm_config_cache"},
                               KnownCache{"ccache", "CCACHE_DIR"}};
constexpr const char* kPathFile = "project";  // beside the caches: whose they are
constexpr Nanos kScanTime = std::chrono::seconds(5);

const KnownCache* Find(std::string_view name) {
  const auto* const found = std::find_if(
      kKnown.begin(), kKnown.end(), [&](const KnownCache& known) { return known.name == name; });
  return found == kKnown.end() ? nullptr : found;
}

Error UnknownCache(const std::string& name) {
  const std::string_view nearest = policy::NearestWord(name, {"pip", "npm", "ccache"});
  return Refused(
      "policy.usage", fmt::format("there is no cache called {}", Printable(name)),
      nearest.empty() ? "use pip, npm or ccache" : fmt::format("did you mean {}?", nearest));
}

Result<std::string> Root() {
  const std::string cache = isolation::DefaultCacheDir();
  if (cache.empty()) {
    return Refused("policy.cache", "there is no place for a cache directory",
                   "set HOME or XDG_CACHE_HOME");
  }
  return cache + "/projects";
}

// A name that says nothing about the project and fits any file system.
std::string IdOf(const std::string& project) { return HashOf(project).substr(7, 24); }

// The directories of all projects, open; nothing if there is none yet.
Result<UniqueFd> OpenRoot() {
  TRY_ASSIGN(const std::string root, Root());
  return sys::OpenNoLinks(AT_FDCWD, root, O_RDONLY | O_DIRECTORY);
}

// The project's path, and on a second line which directory that is: its number and when it was made. Numbers are given
// again; not every file system keeps the time.
Result<std::string> IdentityOf(const std::string& project) {
  struct statx info{};
  const long answer =
      raw::Syscall(SYS_statx, AT_FDCWD, raw::Arg(project.c_str()), AT_SYMLINK_NOFOLLOW,
                   STATX_BASIC_STATS | STATX_BTIME, raw::Arg(&info));
  if (answer < 0) {
    return sys::ErrnoError("policy.cache", fmt::format("cannot look at {}", project), answer);
  }
  const bool dated = (info.stx_mask & STATX_BTIME) != 0;
  return fmt::format("{}\n{} {}.{}\n", project, info.stx_ino, dated ? info.stx_btime.tv_sec : 0,
                     dated ? info.stx_btime.tv_nsec : 0);
}

// The path in what IdentityOf has written.
std::string PathIn(const std::string& identity) { return identity.substr(0, identity.find('\n')); }

// Makes the directory of the project's caches if there is none, and empties it if it is another
// directory's. True if so.
Result<bool> OwnDirectory(const std::string& directory, const std::string& project) {
  TRY_ASSIGN(const std::string identity, IdentityOf(project));
  TRY(sys::MakeDirs(directory, 0700));
  TRY_ASSIGN(const UniqueFd opened, sys::OpenNoLinks(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY));
  // Two first calls at once: the second finds what the first has written.
  if (const long locked = raw::Syscall(SYS_flock, opened.get(), LOCK_EX); locked < 0) {
    return sys::ErrnoError("policy.cache", "cannot lock a cache directory", locked);
  }
  const Result<std::string> known = sys::ReadFileAt(opened.get(), kPathFile, 8192);
  if (known.ok() && *known == identity) {
    return false;
  }
  TRY(EmptyTree(opened.get()));
  TRY_ASSIGN(const UniqueFd file,
             sys::OpenAt(opened.get(), kPathFile, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  TRY(sys::WriteAll(file.get(), identity));
  return known.ok();
}

// An earlier call had it as its own, and may have closed it to its owner.
Status OpenToOwner(const std::string& path) {
  TRY_ASSIGN(const UniqueFd directory, sys::OpenNoLinks(AT_FDCWD, path, O_PATH | O_DIRECTORY));
  const std::string name = fmt::format("/proc/self/fd/{}", directory.get());
  return ::chmod(name.c_str(), 0700) == 0
             ? Status()
             : Status(HostFault("policy.cache", fmt::format("cannot open {} to its owner", path),
                                "`coffer cache clear` removes it"));
}

}  // namespace

Result<OpenedCaches> OpenCaches(const std::string& project, const std::vector<std::string>& names) {
  OpenedCaches opened;
  for (const std::string& name : names) {
    const KnownCache* const known = Find(name);
    if (known == nullptr) {
      return UnknownCache(name);
    }
    TRY_ASSIGN(const std::string root, Root());
    const std::string above = root + "/" + IdOf(project);
    TRY_ASSIGN(const bool emptied, OwnDirectory(above, project));
    if (emptied) {
      opened.notes.push_back(
          "the caches were of another directory with this path, and were emptied");
    }
    TRY(sys::MakeDirs(above + "/" + name, 0700));
    TRY(OpenToOwner(above + "/" + name));
    isolation::OpenedMount mount;
    // For root it lies below /var/cache, a directory of the system; this one was made for the payload above.
    TRY_ASSIGN(mount.path, isolation::OpenHostPath(above + "/" + name, policy::Access::kWrite,
                                                   isolation::Breadth::kSystem));
    TRY_ASSIGN(const UniqueFd directory,
               sys::OpenAt(mount.path.fd.get(), ".", O_RDONLY | O_DIRECTORY));
    const Result<limits::DiskUse> use = limits::ScanDisk(directory.get(), kScanTime);
    const bool measured = use.ok() && use->complete();
    if (!measured || use->bytes > kMostCacheBytes) {
      TRY(EmptyTree(directory.get()));
      opened.notes.push_back(
          measured ? fmt::format("the {} cache had more than {}, and was emptied", name,
                                 FormatSize(kMostCacheBytes))
                   : fmt::format("the {} cache could not be measured, and was emptied", name));
    }
    TRY_ASSIGN(mount.fifos, isolation::FindFifos(mount.path));
    mount.at = "/cache/" + name;
    mount.access = policy::Access::kWrite;
    opened.mounts.push_back(std::move(mount));
    opened.env.emplace_back(known->variable, "/cache/" + name);
  }
  return opened;
}

Result<std::vector<CacheEntry>> ListCaches() {
  std::vector<CacheEntry> list;
  const Result<UniqueFd> root = OpenRoot();
  if (!root.ok()) {
    return root.error().sys_errno == ENOENT ? Result<std::vector<CacheEntry>>(std::move(list))
                                            : Result<std::vector<CacheEntry>>(root.error());
  }
  TRY_ASSIGN(const std::vector<sys::DirEntry> projects, sys::ListDir(root->get()));
  for (const sys::DirEntry& project : projects) {
    const Result<UniqueFd> directory =
        sys::OpenNoLinks(root->get(), project.name, O_RDONLY | O_DIRECTORY);
    if (!directory.ok()) {
      continue;
    }
    const Result<std::string> path = sys::ReadFileAt(directory->get(), kPathFile, 8192);
    for (const KnownCache& known : kKnown) {
      const std::string name(known.name);
      const Result<UniqueFd> cache =
          sys::OpenNoLinks(directory->get(), name, O_RDONLY | O_DIRECTORY);
      if (!cache.ok()) {
        continue;
      }
      const Result<limits::DiskUse> use = limits::ScanDisk(cache->get(), kScanTime);
      list.push_back({path.ok() ? PathIn(*path) : project.name, name, use.ok() ? use->bytes : 0});
    }
  }
  std::sort(list.begin(), list.end(), [](const CacheEntry& a, const CacheEntry& b) {
    return std::tie(a.project, a.name) < std::tie(b.project, b.name);
  });
  return list;
}

Result<size_t> ClearCaches(const std::string& project, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (Find(name) == nullptr) {
      return UnknownCache(name);
    }
  }
  const Result<UniqueFd> root = OpenRoot();
  if (!root.ok()) {
    return root.error().sys_errno == ENOENT ? Result<size_t>(size_t{0})
                                            : Result<size_t>(root.error());
  }
  TRY_ASSIGN(const std::vector<sys::DirEntry> projects, sys::ListDir(root->get()));
  size_t cleared = 0;
  for (const sys::DirEntry& entry : projects) {
    if (!project.empty() && entry.name != IdOf(project)) {
      continue;
    }
    const Result<UniqueFd> directory =
        sys::OpenNoLinks(root->get(), entry.name, O_RDONLY | O_DIRECTORY);
    if (!directory.ok()) {
      continue;
    }
    for (const KnownCache& known : kKnown) {
      const std::string name(known.name);
      const bool wanted =
          names.empty() || std::find(names.begin(), names.end(), name) != names.end();
      if (wanted && sys::OpenNoLinks(directory->get(), name, O_PATH | O_DIRECTORY).ok()) {
        TRY(RemoveTree(directory->get(), name));
        ++cleared;
      }
    }
    if (names.empty()) {
      TRY(RemoveTree(root->get(), entry.name));
    }
  }
  return cleared;
}

}  // namespace coffer::call
