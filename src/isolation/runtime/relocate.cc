// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/relocate.h"

#include <algorithm>
#include <string_view>

#include "isolation/package_etc.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {

namespace {

constexpr std::string_view kPrivate[] = {"/tmp/",  "/workspace/", "/in/", "/dev/",
                                         "/proc/", "/sys/",       "/etc/"};
constexpr std::string_view kNewPlace = "/run/command";

bool IsPrivate(std::string_view path) {
  return !IsPackageEtc(path) &&  // programs look for it where it is
         std::any_of(std::begin(kPrivate), std::end(kPrivate),
                     [&](std::string_view place) { return path.starts_with(place); });
}

// The kernel looks for a loader where the program says, so in the private /tmp it stays there.
bool Moves(const RuntimeFile& file) {
  return IsPrivate(file.inside) &&
         !(file.why == BindReason::kLoader && file.inside.starts_with("/tmp/"));
}

}  // namespace

std::string Relocated(const std::string& path) {
  return IsPrivate(path) ? std::string(kNewPlace) + path : path;
}

std::string NotRelocated(const std::string& path) {
  const std::string prefix = std::string(kNewPlace) + "/";
  return path.starts_with(prefix) ? path.substr(kNewPlace.size()) : path;
}

RuntimeSet Relocated(RuntimeSet set) {
  const bool any = std::any_of(set.files.begin(), set.files.end(), Moves) ||
                   std::any_of(set.links.begin(), set.links.end(),
                               [](const auto& link) { return IsPrivate(link.first); });
  if (!any) {
    return set;
  }
  for (auto& [name, target] : set.links) {
    const std::string absolute = Normalize(std::string(DirName(name)) + "/" + target);
    const bool stays = std::any_of(
        set.files.begin(), set.files.end(),
        [&](const RuntimeFile& file) { return file.inside == absolute && !Moves(file); });
    name = Relocated(name);
    target = RelativeTarget(name, stays ? absolute : Relocated(absolute));
  }
  for (RuntimeFile& file : set.files) {
    if (Moves(file)) {
      file.inside = Relocated(file.inside);
    }
  }
  return Merge(std::move(set), {});
}

}  // namespace coffer::isolation
