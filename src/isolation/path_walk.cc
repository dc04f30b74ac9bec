// SPDX-License-Identifier: Apache-2.0
#include "isolation/path_walk.h"

#include <algorithm>

#include "base/split.h"

namespace coffer::isolation {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

}  // namespace

void PathWalk::Push(std::string_view path) {
  size_t at = 0;
  for (const std::string_view part : SplitText(path, '/')) {
    rest_.insert(rest_.begin() + static_cast<std::ptrdiff_t>(at++), std::string(part));
  }
}

std::optional<std::string> PathWalk::Next() {
  while (!rest_.empty()) {
    const std::string part = std::move(rest_.front());
    rest_.pop_front();
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == "..") {
      left_.push_back(real_);
      // `real_` has no link in it, so this is what the kernel would do.
      real_.resize(std::max<size_t>(real_.rfind('/'), 1));
      continue;
    }
    return (real_ == "/" ? std::string() : real_) + "/" + part;
  }
  return std::nullopt;
}

bool PathWalk::Follow(std::string_view target) {
  if (target.starts_with('/')) {
    real_.assign(1, '/');
  }
  Push(target);
  return ++followed_ <= kMostLinks;
}

}  // namespace coffer::isolation
