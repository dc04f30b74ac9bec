// SPDX-License-Identifier: Apache-2.0
#include "call/run/project_around.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/path_words.h"
#include "base/sys.h"
#include "base/text.h"
#include "isolation/runtime/real_path.h"

namespace coffer::call {
namespace {

using isolation::OpenedMount;

// The directory `path` below `outer`, mounted on itself. Not over a mount point: what is mounted there on the host is not
// part of `outer`, and no word of the caller named it.
Result<OpenedMount> OpenBetween(const OpenedMount& outer, const std::string& path) {
  const long fd = sys::OpenAt2(
      outer.path.fd.get(), path.substr(outer.at.size() + 1), O_PATH | O_DIRECTORY | O_NOFOLLOW,
      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
  struct stat info{};
  if (fd < 0 || ::fstat(static_cast<int>(fd), &info) != 0) {
    return Refused("policy.project.around",
                   fmt::format("the project cannot be shown in {}: {} is not a directory of the "
                               "same mount",
                               PathInWords(Printable(outer.at)), PathInWords(Printable(path))),
                   "name a directory nearer to the project with --ro, or leave --ro out");
  }
  OpenedMount mount;
  mount.path.fd = UniqueFd(static_cast<int>(fd));
  mount.path.path = path;
  mount.path.directory = true;
  mount.path.dev = info.st_dev;
  mount.path.ino = info.st_ino;
  // Its files belong to the boundary exactly if those of the whole tree do.
  mount.path.owner = outer.path.owner;
  mount.path.group = outer.path.group;
  mount.path.path_class = outer.path.path_class;
  mount.at = path;
  mount.within = true;
  return mount;
}

}  // namespace

Status PutAroundProjects(const policy::Envelope& envelope, std::vector<OpenedMount>& mounts) {
  const auto around = [&](const OpenedMount& outer) {
    return std::any_of(mounts.begin(), mounts.end(), [&](const OpenedMount& inner) {
      return isolation::LiesAround(outer, inner);
    });
  };
  std::map<std::string, OpenedMount> between;  // from the outside in
  for (const OpenedMount& outer : mounts) {
    if (!around(outer)) {
      continue;
    }
    if (envelope.overlay) {
      return Refused(
          "policy.mount.overlap",
          fmt::format("the project lies in {}, which --ro-overlay puts behind an overlay",
                      PathInWords(Printable(outer.at))),
          "leave out --ro-overlay, or --ro of that directory");
    }
    for (const OpenedMount& inner : mounts) {
      if (!isolation::LiesAround(outer, inner)) {
        continue;
      }
      for (size_t slash = inner.at.find('/', outer.at.size() + 1); slash != std::string::npos;
           slash = inner.at.find('/', slash + 1)) {
        const std::string path = inner.at.substr(0, slash);
        if (!between.contains(path)) {
          TRY_ASSIGN(between[path], OpenBetween(outer, path));
        }
      }
    }
  }
  std::vector<OpenedMount> ordered;
  std::vector<OpenedMount> rest;
  std::vector<bool> first;
  std::transform(mounts.begin(), mounts.end(), std::back_inserter(first), around);
  for (size_t i = 0; i < mounts.size(); ++i) {
    (first[i] ? ordered : rest).push_back(std::move(mounts[i]));
  }
  for (auto& [path, mount] : between) {
    ordered.push_back(std::move(mount));
  }
  std::move(rest.begin(), rest.end(), std::back_inserter(ordered));
  mounts = std::move(ordered);
  return {};
}

bool IsShownInPlace(const std::string& path, const std::vector<OpenedMount>& mounts) {
  return std::any_of(mounts.begin(), mounts.end(), [&](const OpenedMount& mount) {
    return mount.at == mount.path.path && isolation::IsAtOrBelow(path, mount.at);
  });
}

}  // namespace coffer::call
