// SPDX-License-Identifier: Apache-2.0
//
// A path walked part by part, as the kernel walks it, with whole paths in hand: what a link means
// is the caller's decision.
//
//   PathWalk walk("/");
//   walk.Push("srv/data/../x");
//   while (const std::optional<std::string> next = walk.Next()) {
//     ... lstat(*next); then walk.Stand(*next), or walk.Follow(target) if it is a link
//   }
//   walk.real() has no link, no "." and no ".." in it, as far as every link was followed.
//
// Nothing here looks at the disk. caller_path.h and tree_path.h do, and host_path.h opens what they found without
// following anything, so that what changes in between is refused.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coffer::isolation {

class PathWalk {
 public:
  // From an absolute path without links.
  explicit PathWalk(std::string start) : real_(std::move(start)) {}

  // These parts come before all that is left.
  void Push(std::string_view path);
  // The path of the next name, below real(); nothing at the end.
  std::optional<std::string> Next();
  // The name is no link, or is not followed.
  void Stand(std::string path) { real_ = std::move(path); }
  // The name is a link to there. False if there were more links than the kernel follows.
  [[nodiscard]] bool Follow(std::string_view target);

  const std::string& real() const { return real_; }
  // Directories that the walk left by "..": with a link in the place of one it would go on elsewhere.
  const std::vector<std::string>& left() const { return left_; }

 private:
  std::string real_;
  std::vector<std::string> left_;
  std::deque<std::string> rest_;
  int followed_ = 0;
};

}  // namespace coffer::isolation
