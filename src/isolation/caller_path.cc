// SPDX-License-Identifier: Apache-2.0
#include "isolation/caller_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/split.h"
#include "base/sys.h"
#include "isolation/host_path.h"
#include "isolation/path_walk.h"
#include "isolation/system_paths.h"

namespace coffer::isolation {
namespace {

// Links that led here, and where they were.
class CallerWalk {
 public:
  explicit CallerWalk(policy::Access access) : access_(access) {}

  Result<CallerPath> Run(std::string_view given) {
    TRY_ASSIGN(std::string start,
               given.starts_with('/') ? Result<std::string>("/") : CleanPath("."));
    PathWalk walk(std::move(start));
    walk.Push(given);
    while (const std::optional<std::string> next = walk.Next()) {
      TRY(Step(walk, *next));
    }
    real_ = walk.real();
    TRY(Judge(std::string(given)));
    return CallerPath{std::move(real_), std::move(links_)};
  }

 private:
  Status Step(PathWalk& walk, const std::string& next) {
    struct stat info{};
    if (::lstat(next.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) {
      walk.Stand(next);  // what is not there is refused where it is opened
      return {};
    }
    const std::string& holder = walk.real();
    const bool roots = ::geteuid() == 0
                           ? system_.IsSystemLink(holder, next.substr(next.rfind('/') + 1))
                           : info.st_uid == 0 && system_.OnlyRootChanges(holder);
    if (!roots && info.st_uid != ::geteuid()) {
      return Refused("policy.path.link", next + " is a symbolic link of another user",
                     "name the real path");
    }
    if (!roots) {
      links_.push_back(next);
    }
    TRY_ASSIGN(const std::string target, sys::ReadLinkAt(AT_FDCWD, next));
    if (!walk.Follow(target)) {
      return Refused("policy.path.link", next + " leads in a circle");
    }
    return {};
  }

  Status Judge(const std::string& given) const {
    for (const std::string& link : links_) {
      const std::string holder = link.substr(0, std::max<size_t>(link.rfind('/'), 1));
      if (access_ == policy::Access::kWrite && (real_ == holder || !IsAtOrBelow(real_, holder))) {
        return Refused("policy.path.link",
                       fmt::format("{} is a symbolic link that leads out of its directory, and "
                                   "what it leads to would be writable",
                                   link),
                       fmt::format("if you mean {}, name that instead of {}", real_, given));
      }
      if (LeadsIntoHidden(holder)) {
        return Refused("policy.path.link",
                       fmt::format("{} is a symbolic link into a hidden directory", link),
                       fmt::format("if you mean {}, name that instead of {}", real_, given));
      }
    }
    return {};
  }

  // Whether a part of the path that is not one of `holder` begins with a dot.
  bool LeadsIntoHidden(const std::string& holder) const {
    const std::vector<std::string_view> parts = SplitText(real_, '/');
    const std::vector<std::string_view> common = SplitText(holder, '/');
    size_t at = 0;
    while (at < parts.size() && at < common.size() && parts[at] == common[at]) {
      ++at;
    }
    return std::any_of(parts.begin() + static_cast<std::ptrdiff_t>(at), parts.end(),
                       [](std::string_view part) { return part.starts_with('.'); });
  }

  policy::Access access_;
  SystemPaths system_;
  std::string real_;  // at the end
  std::vector<std::string> links_;
};

}  // namespace

Result<CallerPath> ResolveCallerPath(std::string_view given, policy::Access access) {
  if (given.empty()) {
    return Refused("policy.path", "an empty path");
  }
  return CallerWalk(access).Run(given);
}

}  // namespace coffer::isolation
