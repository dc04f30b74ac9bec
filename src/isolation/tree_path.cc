// SPDX-License-Identifier: Apache-2.0
#include "isolation/tree_path.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>

#include "base/split.h"
#include "base/sys.h"

namespace coffer::isolation {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

// Goes by whole paths: a link may lead out of the tree and, over another link, back into it.
class Walk {
 public:
  explicit Walk(const HostPath& root) : root_(root), real_(root.path) {}

  TreePath Run(const std::string& path) {
    Push(path);
    while (!rest_.empty()) {
      const std::string part = std::move(rest_.front());
      rest_.pop_front();
      if (part.empty() || part == ".") {
        continue;
      }
      if (part == "..") {
        // `real_` has no link in it, so this is what the kernel would do.
        real_.resize(std::max<size_t>(real_.rfind('/'), 1));
      } else if (!Step(part)) {
        return std::move(found_);
      }
    }
    if (IsAtOrBelow(real_, root_.path)) {
      found_.end = missing_ ? TreePath::End::kMissing : TreePath::End::kInside;
      found_.path = Relative(real_);
    }
    return std::move(found_);
  }

 private:
  void Push(std::string_view path) {
    size_t at = 0;
    for (const std::string_view part : SplitText(path, '/')) {
      rest_.insert(rest_.begin() + static_cast<std::ptrdiff_t>(at++), std::string(part));
    }
  }

  std::string Relative(const std::string& path) const {
    return path == root_.path ? "" : path.substr(root_.path.size() + 1);
  }

  // False if there are too many links.
  bool Step(const std::string& name) {
    std::string next = real_ == "/" ? std::string() : real_;
    next += '/';
    next += name;
    struct stat info{};
    missing_ = missing_ || ::lstat(next.c_str(), &info) != 0;
    if (missing_ || !S_ISLNK(info.st_mode)) {
      real_ = next;
      return true;
    }
    const Result<std::string> target = sys::ReadLinkAt(AT_FDCWD, next);
    if (!target.ok() || ++followed_ > kMostLinks) {
      return false;
    }
    if (IsAtOrBelow(next, root_.path)) {
      found_.links.push_back(Relative(next));
    }
    if (target->starts_with('/')) {
      real_.assign(1, '/');
    }
    Push(*target);
    return true;
  }

  const HostPath& root_;
  std::string real_;  // so far
  std::deque<std::string> rest_;
  bool missing_ = false;
  int followed_ = 0;
  TreePath found_;
};

}  // namespace

TreePath FollowInTree(const HostPath& root, const std::string& path) {
  return Walk(root).Run(path);
}

}  // namespace coffer::isolation
