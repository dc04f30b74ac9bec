// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose_overlay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/path_words.h"

namespace coffer::isolation {
namespace {

const std::string kPlace = "/.coffer/overlay";
// The layer's directories and what the kernel makes and removes while it tries them out.
constexpr uint64_t kInodes = 16;
constexpr uint64_t kBytes = 64 << 10;

}  // namespace

bool BehindOverlay(const policy::Envelope& envelope, const HostPath& runtime) {
  return envelope.overlay && runtime.directory &&
         (runtime.path == "/usr" || runtime.path_class == PathClass::kCaller);
}

bool BehindOverlay(const policy::Envelope& envelope, const OpenedMount& mount) {
  return envelope.overlay && mount.path.directory && mount.access == policy::Access::kRead &&
         !mount.within && !mount.link;
}

Status CheckOverlays(const policy::Envelope& envelope, const std::vector<OpenedMount>& mounts) {
  if (!envelope.overlay) {
    return {};
  }
  for (const policy::Mount& asked : envelope.mounts) {
    const bool file = std::any_of(mounts.begin(), mounts.end(), [&](const OpenedMount& mount) {
      return mount.at == asked.at && mount.access == policy::Access::kRead && !mount.path.directory;
    });
    if (file) {
      return Refused("policy.mount.overlay",
                     fmt::format("{} is a single file, and an overlay needs a directory",
                                 PathInWords(asked.host)),
                     "mount the directory it lies in, or bring in a copy with --in");
    }
  }
  return {};
}

void PutBehindOverlay(BindMount& bind, RootPart& root) {
  const auto others =
      std::count_if(root.binds.begin(), root.binds.end(),
                    [](const BindMount& other) { return !other.overlay_upper.empty(); });
  const std::string own = fmt::format("{}/{}", kPlace, others);
  bind.overlay_upper = own + "/upper";
  bind.overlay_work = own + "/work";
}

void AddOverlayPlace(RootPart& root, DirectoryList& dirs) {
  uint64_t count = 0;
  for (const BindMount& bind : root.binds) {
    if (!bind.overlay_upper.empty()) {
      dirs.AddParentsOf(bind.overlay_upper);
      dirs.Add(bind.overlay_upper);
      dirs.Add(bind.overlay_work);
      ++count;
    }
  }
  if (count > 0) {
    root.overlays = kPlace;
    root.tmpfs.push_back({kPlace, kBytes * count, kInodes * count, 0700, false});
  }
}

}  // namespace coffer::isolation
