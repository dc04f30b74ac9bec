// SPDX-License-Identifier: Apache-2.0
#include "isolation/package_etc.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

// Below /etc. A name that ends with "*" stands for all that begin like it. Each costs a mount in
// every call of a host that has it, so what programs can do without is not here.
constexpr std::string_view kNames[] = {
    "alternatives",  "ld.so.cache",   "ssl/openssl.cnf", "ssl/certs", "java-*", "ImageMagick-*",
    "fonts",         "matplotlibrc",  "tcltk",           "texmf",     "R",      "python3.*",
    "maven/m2.conf", "maven/logging",  // not settings.xml, which may hold passwords
};
// Links alone, made by the package manager: nothing in them can be private.
constexpr std::string_view kLinksOnly[] = {"/etc/alternatives", "/etc/ssl/certs"};
constexpr std::string_view kEtc = "/etc/";
constexpr size_t kMostEntries = 2000;
constexpr int kMostLevels = 8;

bool Matches(std::string_view part, std::string_view name) {
  return name.ends_with('*') ? part.starts_with(name.substr(0, name.size() - 1)) : part == name;
}

std::string_view FirstPart(std::string_view path) { return path.substr(0, path.find('/')); }

class PublicSearch {
 public:
  Status Look(int directory, const std::string& prefix, int level) {
    TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(directory));
    entries_ += entries.size();
    if (level > kMostLevels || entries_ > kMostEntries) {
      return Refused("policy.path.broad", "more files than a package's configuration has");
    }
    for (const sys::DirEntry& entry : entries) {
      TRY(LookAt(directory, entry, prefix, level));
    }
    return {};
  }

  std::vector<std::string> Take() { return std::move(covered_); }

 private:
  Status LookAt(int directory, const sys::DirEntry& entry, const std::string& prefix, int level) {
    if (entry.type == DT_LNK) {
      return {};
    }
    struct stat info{};
    if (::fstatat(directory, entry.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return HostFault("policy.path", fmt::format("cannot look at {}{}", prefix, entry.name));
    }
    if (S_ISDIR(info.st_mode)) {
      if ((info.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH)) {
        return Refused("policy.path.private", fmt::format("{}{} is private", prefix, entry.name));
      }
      TRY_ASSIGN(const UniqueFd below,
                 sys::OpenAt(directory, entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      return Look(below.get(), prefix + entry.name + "/", level + 1);
    }
    if (!S_ISLNK(info.st_mode) && (!S_ISREG(info.st_mode) || (info.st_mode & S_IROTH) == 0)) {
      covered_.push_back(prefix + entry.name);
    }
    return {};
  }

  std::vector<std::string> covered_;
  size_t entries_ = 0;
};

}  // namespace

bool IsPackageEtc(std::string_view path) {
  if (!path.starts_with(kEtc)) {
    return false;
  }
  path.remove_prefix(kEtc.size());
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view name) {
    return name.find('/') == std::string_view::npos ? Matches(FirstPart(path), name)
                                                    : IsAtOrBelow(path, name);
  });
}

std::vector<std::string> FindPackageEtc() {
  std::vector<std::string> found;
  // One listing costs less than asking for each name, most of which no host has.
  const Result<UniqueFd> etc = sys::Open("/etc", O_RDONLY | O_DIRECTORY);
  if (!etc.ok()) {
    return found;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(etc->get());
  if (!entries.ok()) {
    return found;
  }
  for (const sys::DirEntry& entry : *entries) {
    for (const std::string_view name : kNames) {
      struct stat info{};
      const bool nested = name.find('/') != std::string_view::npos;
      if (nested ? entry.name == FirstPart(name) &&
                       ::fstatat(etc->get(), std::string(name).c_str(), &info, 0) == 0
                 : Matches(entry.name, name)) {
        found.push_back(std::string(kEtc) + (nested ? std::string(name) : entry.name));
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::vector<std::string>> FindNotPublic(const HostPath& directory) {
  // As root the boundary's uid belongs to no user, and the files' own modes keep it out.
  if (::geteuid() == 0 || std::find(std::begin(kLinksOnly), std::end(kLinksOnly), directory.path) !=
                              std::end(kLinksOnly)) {
    return std::vector<std::string>();
  }
  TRY_ASSIGN(const UniqueFd fd,
             sys::OpenAt(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  PublicSearch search;
  TRY(search.Look(fd.get(), "", 0));
  return search.Take();
}

}  // namespace coffer::isolation
